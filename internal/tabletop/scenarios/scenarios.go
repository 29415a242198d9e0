package scenarios

import (
	"embed"
	"io"
	"path"
	"strings"
)

//go:embed *.yaml traces/*.csv
var files embed.FS

// suffix ends the file of a scenario.
const suffix = ".yaml"

// Names are the scenarios that ship, in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("scenarios: " + err.Error()) // they are part of the program
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out = append(out, name)
		}
	}
	return out
}

// Read is the file of a scenario, and its file name. The error is fs.ErrNotExist
// if none of that name ships.
func Read(name string) (file string, data []byte, err error) {
	file = name + suffix
	data, err = files.ReadFile(file)
	return file, data, err
}

// Open opens a file that a scenario names.
func Open(name string) (io.ReadCloser, error) { return files.Open(path.Clean(name)) }
