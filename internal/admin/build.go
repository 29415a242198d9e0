package admin

import (
	"runtime/debug"
	"strings"
)

// Build is what the running binary was made from.
type Build struct {
	Version  string `json:"version" doc:"Module version, or devel"`
	Revision string `json:"revision,omitempty" doc:"VCS revision, with -dirty when modified"`
	Go       string `json:"go" doc:"Toolchain"`
}

// ReadBuild reads the build information of the running binary.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: "devel"}
	}
	b := Build{Version: strings.Trim(info.Main.Version, "()"), Go: info.GoVersion}
	if b.Version == "" {
		b.Version = "devel"
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Revision != "" {
		b.Revision += "-dirty"
	}
	return b
}
