package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// How long each load is profiled unless -span says longer, and how many entries
// are printed.
const (
	profileSpan = 5 * time.Second
	profileTop  = 30
)

// profile puts sluice under each load and writes what it spends its time and its
// memory on.
func (s *stage) profile(ctx context.Context) error {
	if err := os.MkdirAll(s.o.profile, 0o755); err != nil {
		return err
	}
	g, err := s.startSluice(ctx, s.o.binary)
	if err != nil {
		return err
	}
	defer g.stop()
	for _, l := range loads {
		if !s.o.wants(l.name) {
			continue
		}
		if err := s.profileLoad(ctx, g, l); err != nil {
			return err
		}
		for _, view := range [][]string{{"cpu"}, {"allocs", "-sample_index=alloc_space"}} {
			if err := s.printTop(ctx, l.name, view[0], view[1:]...); err != nil {
				return err
			}
		}
	}
	if s.o.wants("memory") {
		if err := s.profileMemory(ctx, g); err != nil {
			return err
		}
	}
	s.say("\nall is in %s; to look closer: go tool pprof -http=: FILE", s.o.profile)
	return nil
}

func (s *stage) profileFile(load, kind string) string {
	return filepath.Join(s.o.profile, load+"-"+kind+".pprof")
}

// profileLoad runs one load while the profiles are taken: processor time and
// allocations over the same while, the heap at its end.
func (s *stage) profileLoad(ctx context.Context, g *gateway, l load) error {
	s.say("\nprofiling %s", l.what)
	o := s.o
	span := max(o.span, profileSpan)
	o.span = span + 2*time.Second
	req := newRequest(l.model, g.key, l.size)
	done := make(chan result, 1)
	go func() { done <- l.run(ctx, o, g.data, &req) }()
	time.Sleep(time.Second)
	if l.model == modelPaced {
		span = pacedChunks*pacedEvery - time.Second
	}
	seconds := int(span.Seconds())
	allocs := make(chan error, 1)
	go func() {
		allocs <- s.keep(ctx, g, l.name, "allocs", fmt.Sprintf("/debug/pprof/allocs?seconds=%d", seconds))
	}()
	err := s.keep(ctx, g, l.name, "cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	err = errors.Join(err, <-allocs, s.keep(ctx, g, l.name, "heap", "/debug/pprof/heap?gc=1"))
	res := <-done
	if res.wrong > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %w", l.name, res.first))
	}
	return errors.Join(err, g.settled(ctx))
}

// profileMemory tells what is held while many streams are open.
func (s *stage) profileMemory(ctx context.Context, g *gateway) error {
	s.say("\nprofiling %d open streams", openStreams)
	streams, err := open(ctx, g)
	defer streams.close()
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	for _, kind := range []string{"heap", "goroutine"} {
		if err := s.keep(ctx, g, "memory", kind, "/debug/pprof/"+kind+"?gc=1"); err != nil {
			return err
		}
	}
	return s.printTop(ctx, "memory", "heap", "-sample_index=inuse_space")
}

// keep writes one profile.
func (s *stage) keep(ctx context.Context, g *gateway, load, kind, path string) error {
	text, err := g.get(ctx, path)
	if err != nil {
		return err
	}
	return os.WriteFile(s.profileFile(load, kind), text, 0o644)
}

// printTop prints the dearest entries of a profile.
func (s *stage) printTop(ctx context.Context, load, kind string, flags ...string) error {
	fmt.Printf("\n== %s of %s\n", kind, load)
	args := append([]string{"tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", profileTop)}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, s.profileFile(load, kind))...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
