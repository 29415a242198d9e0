package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/config"
	"sluice/internal/fakellm"
)

// simulation is the fleet simulated in this process, on a port of its own so
// that everything on the way to it is real.
type simulation struct {
	server *fakellm.Server
	url    string
	told   bool // it stands in fleetFile
}

// fleetFile holds the simulated fleet's address while it is there, for whoever
// compares its book with the ledger.
const fleetFile = "fleet-url"

// tellFleet writes the fleet's address down, once. a.reloading is held.
func (a *App) tellFleet() {
	if a.simulated == nil || a.simulated.told {
		return
	}
	a.simulated.told = true
	path := filepath.Join(a.settings.Data, fleetFile)
	if err := os.WriteFile(path, []byte(a.simulated.base()+"\n"), 0o600); err != nil {
		a.log.Warn("the simulated fleet's address could not be written down", slog.Any("error", err))
		return
	}
	a.cleanup.push("forget the simulated fleet's address", func(context.Context) error { return os.Remove(path) })
}

// base is the fleet's address without the version.
func (s *simulation) base() string { return strings.TrimSuffix(s.url, "/v1") }

// simulate starts the fleet, once, and returns its address.
func (a *App) simulate() (string, error) {
	if a.simulated != nil {
		return a.simulated.url, nil
	}
	fleet, err := fakellm.New(fakellm.Options{})
	if err != nil {
		return "", fmt.Errorf("simulate a fleet: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fleet.Close()
		return "", fmt.Errorf("simulate a fleet: %w", err)
	}
	server := &http.Server{Handler: fleet, ReadHeaderTimeout: 10 * time.Second}
	// It is joined by its own clean-up: the planes are stopped, and waited for,
	// while it still answers.
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends when the clean-up closes it
	}()
	a.cleanup.push("stop the simulated fleet", func(context.Context) error {
		fleet.Close()
		err := server.Close()
		<-done
		return err
	})
	a.simulated = &simulation{server: fleet, url: "http://" + l.Addr().String() + "/v1"}
	return a.simulated.url, nil
}

// simulates reports whether a configuration uses the simulated fleet.
func simulates(c *config.Config) bool {
	for _, p := range c.Providers {
		if p.Simulated {
			return true
		}
	}
	return false
}

// developmentFile holds the development tenant's key, so that it is the same on
// every run.
const developmentFile = "dev-key"

// developmentKey is the key of the tenant of a gateway without a configuration.
func (a *App) developmentKey() (sluice.Secret, error) {
	if a.devKey != "" {
		return sluice.NewSecret(a.devKey), nil
	}
	data := a.o.Data
	if data == "" {
		data = "sluice-data"
	}
	path := filepath.Join(data, developmentFile)
	if kept, err := os.ReadFile(path); err == nil {
		key := strings.TrimSpace(string(kept))
		if _, err := auth.Parse(key); err == nil {
			a.devKey = key
			return sluice.NewSecret(key), nil
		}
	}
	minted, err := auth.Mint("dev")
	if err != nil {
		return sluice.Secret{}, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return sluice.Secret{}, fmt.Errorf("make the data directory: %w", err)
	}
	if err := os.WriteFile(path, []byte(minted.Key.Reveal()+"\n"), 0o600); err != nil {
		return sluice.Secret{}, fmt.Errorf("keep the development key: %w", err)
	}
	a.devKey = minted.Key.Reveal()
	return minted.Key, nil
}

// greet tells a person at the terminal how to begin.
func (a *App) greet() {
	a.reloading.Lock() // the admin plane serves already
	a.tellFleet()
	a.reloading.Unlock()
	out := a.o.Stdout
	fmt.Fprintf(out, "sluice is up: data plane http://%s, admin API http://%s\n", a.Addr(), a.AdminAddr())
	if a.firstToken != "" {
		fmt.Fprintf(out, "\nadmin token, shown once and kept in %s:\n  %s\n",
			filepath.Join(a.settings.Data, bootstrapFile), a.firstToken)
	}
	if a.devKey == "" {
		return
	}
	fmt.Fprintf(out, `
models sim-small and sim-large are a simulated fleet; try one from another terminal:

curl -iN http://%s/v1/chat/completions \
  -H 'Authorization: Bearer %s' \
  -d '{"model": "sim-small", "stream": true, "messages": [{"role": "user", "content": "What does a sluice do?"}]}'

then ask why it went as it did, with the sluice-request-id of the answer, and what it cost:

%[3]s explain REQUEST_ID
%[3]s usage --by model

or replay a trace, and compare what the ledger says with what the fleet served:

%[3]s replay synthetic:vtc-arena --until 30s --speed 5 --target http://%[1]s --key %[2]s --backend %[4]s
`, a.Addr(), a.devKey, a.o.Program, a.simulated.base())
}
