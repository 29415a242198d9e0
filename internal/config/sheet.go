package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sluice"
	"sluice/internal/capacity"
	"sluice/internal/fleet"
)

// Sheet is a file of the planner. It knows rules beyond its single values. The
// path of what is wrong is one of the file; an empty fix is none.
type Sheet interface {
	Check(report func(path, cause, fix string))
}

// maxSheet bounds a file of the planner, in bytes.
const maxSheet = 1 << 20

// LoadSheet reads a file of the planner into v. The error is Problems: all that is
// wrong with it.
func LoadSheet(path string, v Sheet, env Env) error {
	data, err := readFile(path, maxSheet)
	if err != nil {
		return Problems{{File: path, Cause: fmt.Sprintf("cannot read the plan: %s", err), Fix: "give the path of a YAML file that the process can read; docs/capacity.md has examples"}}
	}
	return ReadSheet(path, data, v, env)
}

// ReadSheet reads a file of the planner; name stands in messages.
func ReadSheet(name string, data []byte, v Sheet, env Env) error {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	body, problems := parseYAML(name, data)
	if problems != nil {
		return problems
	}
	if body == nil {
		return Problems{{File: name, Pos: Pos{1, 1}, Cause: "the file is empty", Fix: "docs/capacity.md has examples"}}
	}
	d := newDecoder(name, env, body)
	d.into(body, v, "")
	v.Check(func(path, cause, fix string) {
		if d.toldOf(path) {
			return
		}
		d.report(d.nearest(path), path, fix, "%s", cause)
	})
	if len(d.problems) > 0 {
		d.problems.sort()
		return d.problems
	}
	return nil
}

// toldOf reports whether a value, or one around or inside of it, could not be
// read: what follows from that is not a mistake of its own.
func (d *decoder) toldOf(path string) bool {
	for at := path; at != ""; at = parent(at) {
		if d.broken[at] {
			return true
		}
	}
	for at := range d.broken {
		if strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") {
			return true
		}
	}
	return false
}

// parent is the path of what a value is part of; empty for the file.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// nearest is where a value stands, or what it is missing in.
func (d *decoder) nearest(path string) Pos {
	for at := path; at != ""; at = parent(at) {
		if p, ok := d.pos[at]; ok {
			return p
		}
	}
	return Pos{1, 1}
}

// ReplicaFile is what one replica can do, as sluice capacity calibrate writes it.
type ReplicaFile struct {
	Name string `json:"name,omitempty" jsonschema:"what it is called; the file's name if left out"`
	GPUs Count  `json:"gpus,omitempty" jsonschema:"GPUs of one replica; 1 if left out"`

	PrefillRate    Count `json:"prefill_rate" jsonschema:"input tokens per second"`
	PrefillPerPair Fine  `json:"prefill_per_pair,omitempty" jsonschema:"what each pair of a token of the prompt with one before it adds, such as 4.1ns"`
	Chunk          Count `json:"chunk,omitempty" jsonschema:"most input tokens of one step"`
	StepBase       Fine  `json:"step_base" jsonschema:"a decode step, empty"`
	StepPerRequest Fine  `json:"step_per_request,omitempty" jsonschema:"what a running request adds to a step"`
	StepPerToken   Fine  `json:"step_per_token,omitempty" jsonschema:"what a token of context adds to a step, such as 76.3ns"`
	KVTokens       Count `json:"kv_tokens,omitempty" jsonschema:"key-value memory; not bounded if left out"`
	Slots          Count `json:"slots,omitempty" jsonschema:"most running requests; 256 if left out"`
}

// Check reports what is wrong beyond single values.
func (f *ReplicaFile) Check(report func(path, cause, fix string)) {
	if f.PrefillRate == 0 {
		report("prefill_rate", "would never answer", "write input tokens per second, such as 30k")
	}
	if f.StepBase+f.StepPerRequest == 0 {
		report("step_base", "is no time", "write how long a decode step takes, such as 7.86ms")
	}
	if f.GPUs > capacity.MaxAllocated {
		report("gpus", fmt.Sprintf("is more than %d", capacity.MaxAllocated), "write the GPUs of one replica")
	}
}

// LoadReplica reads what one replica can do. The error is Problems.
func LoadReplica(path string) (capacity.Replica, error) {
	var f ReplicaFile
	if err := LoadSheet(path, &f, nil); err != nil {
		return capacity.Replica{}, err
	}
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return capacity.Replica{Name: f.Name, GPUs: int64(max(f.GPUs, 1)), Profile: fleet.Profile{
		PrefillRate: int64(f.PrefillRate), PrefillPerPair: int64(f.PrefillPerPair), ChunkTokens: sluice.Tokens(f.Chunk),
		StepBase: time.Duration(f.StepBase) / 1000, StepPerJob: time.Duration(f.StepPerRequest) / 1000, StepPerToken: int64(f.StepPerToken),
		KVCapacity: sluice.Tokens(f.KVTokens), Slots: int(f.Slots),
	}}, nil
}
