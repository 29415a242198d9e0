package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	rounds  int
	span    time.Duration // of one closed loop
	only    []string
	json    bool
	binary  string // of sluice; empty builds it
	against string // another one, in the place of the plain gateway
	profile string // directory; empty does not profile
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleUpstream:
			exit(serveUpstream())
		case rolePlain:
			exit(servePlain(os.Args[2:]))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, parse()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func parse() options {
	var o options
	var only string
	flag.IntVar(&o.rounds, "rounds", 3, "how often each load is measured, by turns")
	flag.DurationVar(&o.span, "span", 1500*time.Millisecond, "how long one closed loop takes")
	flag.StringVar(&only, "only", "", "loads to run, by name and separated by commas; all if empty")
	flag.BoolVar(&o.json, "json", false, "print the report as JSON")
	flag.StringVar(&o.binary, "sluice", "", "a sluice binary to measure; built from this tree if empty")
	flag.StringVar(&o.against, "against", "", "a sluice binary to compare with, in the place of the plain gateway")
	flag.StringVar(&o.profile, "profile", "", "write CPU and heap profiles of sluice under each load to this directory, and measure nothing")
	flag.Parse()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	return o
}

func (o *options) wants(name string) bool { return len(o.only) == 0 || slices.Contains(o.only, name) }

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.binary == "" {
		if o.binary, err = build(ctx, dir); err != nil {
			return err
		}
	}
	s := &stage{o: o, dir: dir}
	if err := s.startUpstream(ctx); err != nil {
		return err
	}
	defer s.upstream.stop()
	if o.profile != "" {
		return s.profile(ctx)
	}
	began := time.Now()
	report, err := s.measure(ctx)
	if err != nil {
		return err
	}
	report.Seconds = time.Since(began).Round(time.Second / 10).Seconds()
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = report.table(os.Stdout)
	}
	if report.Wrong > 0 {
		err = errors.Join(err, fmt.Errorf("%d answers were wrong, the first: %s", report.Wrong, report.FirstWrong))
	}
	return err
}

// measure runs all rounds.
func (s *stage) measure(ctx context.Context) (*report, error) {
	r := newReport(s.o)
	if s.o.wants("memory") {
		for range min(2, s.o.rounds) {
			if err := s.measureMemory(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	pair, err := s.startPair(ctx)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	if err := s.warm(ctx, pair); err != nil {
		return nil, err
	}
	for round := range s.o.rounds {
		order := []*gateway{pair.plain, pair.sluice}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, l := range loads {
			if !s.o.wants(l.name) {
				continue
			}
			s.say("round %d of %d: %s", round+1, s.o.rounds, l.what)
			if err := s.measureLoad(ctx, r, l, order); err != nil {
				return nil, err
			}
		}
		if s.o.wants("latency") {
			s.say("round %d of %d: latency", round+1, s.o.rounds)
			if err := s.measureLatency(ctx, r, order); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// say tells a person at the terminal how far it is.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
