package app

import (
	"fmt"

	"sluice/internal/catalog"
	"sluice/internal/config"
	"sluice/internal/versions"
)

// file is the configuration file as it is read, or what stands for one.
type file struct {
	name string
	text []byte
	hash string // versions.HashOf the text
}

// made is a configuration that is ready to be put in force, and what it was made
// from.
type made struct {
	cfg      *config.Config
	snapshot *config.Snapshot
	content  versions.Content
}

// readFile reads the configuration file. The error is config.Problems.
func (a *App) readFile() (file, error) {
	if a.o.ConfigPath == "" {
		o, err := a.demo()
		if err != nil {
			return file{}, err
		}
		text := config.DemoFile(o)
		return file{config.DemoName, text, versions.HashOf(text)}, nil
	}
	text, err := config.Read(a.o.ConfigPath)
	if err != nil {
		return file{}, err
	}
	return file{a.o.ConfigPath, text, versions.HashOf(text)}, nil
}

func (a *App) demo() (config.DemoOptions, error) {
	key, err := a.developmentKey()
	return config.DemoOptions{Key: key, Data: a.o.Data, Env: a.o.Getenv}, err
}

// variables looks up what the configuration refers to.
func (a *App) variables() (config.Env, error) {
	if a.o.ConfigPath != "" {
		return a.o.Getenv, nil
	}
	o, err := a.demo()
	return o.Variables, err
}

// fromFile compiles a file. The error is config.Problems.
func (a *App) fromFile(f file) (*made, error) {
	m, err := a.compile(f.name, f.text, config.ParseOptions{})
	if err != nil {
		return nil, err
	}
	m.content = versions.Content{File: f.name, FileHash: f.hash, Text: m.cfg.Kept(f.text, config.NewMarks(a.markKey, m.cfg))}
	return m, nil
}

// fromContent compiles what a version was made of. now is the file as it is now, which
// has the secrets that were taken out of the version's text.
func (a *App) fromContent(c versions.Content, now file) (*made, error) {
	text, err := textOf(c, now)
	if err != nil {
		return nil, err
	}
	changes, err := config.ParseChanges(c.Changes)
	if err != nil {
		return nil, err
	}
	m, err := a.compile(nameOf(c, now), text, config.ParseOptions{Changes: changes, Marks: a.marks(now)})
	if err != nil {
		return nil, err
	}
	m.content = c
	return m, nil
}

// textOf is the text of a version, with its secrets where it is the file of now.
func textOf(c versions.Content, now file) ([]byte, error) {
	switch {
	case c.FileHash == now.hash && now.hash != "":
		return now.text, nil
	case c.Text == "":
		return nil, conflict("the text of that version was not kept, since a secret stands in it in a way that hides where it ends",
			"write secrets as ${NAME} or file:/path; what such a version said is in the file's own history alone")
	}
	return []byte(c.Text), nil
}

// nameOf is what messages call the text of a version: lines of an earlier text are not
// those of the file.
func nameOf(c versions.Content, now file) string {
	if c.FileHash == now.hash {
		return c.File
	}
	return fmt.Sprintf("%s as of %s", c.File, c.FileHash)
}

// marks knows the secrets that stand in the file of now, and in what is in force.
func (a *App) marks(now file) config.Marks {
	var cfg, applied *config.Config
	if env, err := a.variables(); err == nil {
		if c, err := config.Parse(now.name, now.text, env); err == nil {
			cfg = c
		}
	}
	if a.applied != nil {
		applied = a.applied.cfg
	}
	return config.NewMarks(a.markKey, cfg, applied)
}

// compile parses and compiles a text. It touches nothing but the fleet that is
// simulated in this process, which the first configuration that asks for it starts.
func (a *App) compile(name string, text []byte, o config.ParseOptions) (*made, error) {
	var err error
	if o.Env, err = a.variables(); err != nil {
		return nil, err
	}
	cfg, err := config.ParseWith(name, text, o)
	if err != nil {
		return nil, err
	}
	a.override(cfg)
	if a.prices == nil { // it is that of the binary: it does not change
		if a.prices, err = catalog.Load(); err != nil {
			return nil, err
		}
	}
	to := config.CompileOptions{Lookup: known(a.prices), Hasher: a.hasher}
	if simulates(cfg) {
		if to.SimulatedURL, err = a.simulate(); err != nil {
			return nil, err
		}
	}
	snapshot, err := config.Compile(cfg, to)
	if err != nil {
		return nil, err
	}
	return &made{cfg: cfg, snapshot: snapshot}, nil
}

// override puts what the command line says in place of what the file does.
func (a *App) override(cfg *config.Config) {
	if a.o.Listen != "" {
		cfg.Listen = config.Address(a.o.Listen)
	}
	if a.o.AdminListen != "" {
		cfg.Admin.Listen = config.Address(a.o.AdminListen)
	}
	if a.o.Data != "" {
		cfg.Data = a.o.Data
	}
}
