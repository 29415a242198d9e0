package cli

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/internal/admin"
	"sluice/internal/capacity"
	"sluice/internal/config"
)

type capacityAllocateCmd struct {
	File string `arg:"" help:"YAML file of the models that share a fleet; see docs/capacity.md." type:"path"`
	GPUs *int64 `name:"gpus" help:"GPUs of the fleet, in place of the file's." placeholder:"G"`

	Check    bool `help:"Exit 1 unless all demand is served and nothing is to be moved."`
	Commands bool `help:"Print the commands of the moves alone, in their order."`
	output
}

// Run shares GPUs.
func (c *capacityAllocateCmd) Run(env *Env) error {
	var f capacity.AllocationFile
	if err := config.LoadSheet(c.File, &f, env.Getenv); err != nil {
		return err
	}
	if n := c.GPUs; n != nil {
		if *n < 1 || *n > capacity.MaxAllocated {
			return &codedError{code: exitUsage, msg: fmt.Sprintf("--gpus: %d is out of range", *n), hint: fmt.Sprintf("write 1 to %d GPUs", capacity.MaxAllocated)}
		}
		f.GPUs = *n
	}
	illustrative := false
	claims, err := f.Claims(func(profile string) (capacity.Replica, error) {
		r, measured, err := findReplica(profile)
		illustrative = illustrative || !measured
		return r, err
	})
	if err != nil {
		return planned(c.File, err)
	}
	answer, err := admin.AllocationFor(&f, claims)
	if err != nil {
		return planned(c.File, err)
	}
	if c.Commands {
		if answer.Moves == nil {
			return &codedError{code: exitUsage, msg: "the file does not say what runs", hint: "list it under current: docs/capacity.md"}
		}
		if len(answer.Moves.Steps) == 0 {
			fmt.Fprintln(env.Stderr, "nothing is to be moved")
		}
		for i := range answer.Moves.Steps {
			fmt.Fprintln(env.Stdout, strings.Join(commands(&answer.Moves.Steps[i]), "\n"))
		}
	} else if err := c.print(env.Stdout, allocationView(&answer, illustrative)); err != nil {
		return err
	}
	if c.Check && (answer.Satisfied < 1 || answer.Moves != nil && len(answer.Moves.Steps) > 0) {
		return &codedError{code: exitFailed, msg: unmet(&answer)}
	}
	return nil
}

// unmet is what --check does not let pass.
func unmet(a *admin.CapacityAllocation) string {
	var parts []string
	if a.Satisfied < 1 {
		parts = append(parts, share(a.Satisfied)+" of the demand is served")
	}
	if a.Moves != nil && len(a.Moves.Steps) > 0 {
		parts = append(parts, plural(len(a.Moves.Steps), "move")+" to be made, which --commands prints")
	}
	return strings.Join(parts, "; ")
}

func allocationView(a *admin.CapacityAllocation, illustrative bool) view {
	v := view{data: a, columns: []string{"model", "replicas", "gpus", "replicas_needed", "satisfied", "fits_factor", "engine", "binding", "profile"}}
	rows := [][]string{{"model", "GPUs", "replicas", "needed", "demand served", "holds", "engines' time", "", "binds", "TTFT p90", "TPOT"}}
	short := 0
	for i := range a.Models {
		m := &a.Models[i]
		used, filled, engine := "", "", ""
		if m.Utilisation != nil {
			used, filled, engine = share(m.Utilisation.Engine), bar(m.Utilisation.Engine), number(m.Utilisation.Engine)
		}
		if m.Satisfied < 1 {
			short++
		}
		v.rows = append(v.rows, []string{m.Name, count(m.Replicas), count(m.GPUs), count(m.Needed), number(m.Satisfied), number(m.Factor), engine, m.Binding, m.Profile})
		ttft, tpot := "", ""
		if l := m.Latency; l != nil {
			ttft, tpot = milliseconds(l.TTFT), milliseconds(l.TPOT)
		}
		rows = append(rows, []string{
			m.Name, count(m.GPUs), count(m.Replicas), count(m.Needed), share(m.Satisfied), factor(m.Factor) + "×", used, filled, dimensionWord(m.Binding), ttft, tpot,
		})
	}
	var text strings.Builder
	switch short {
	case 0:
		fmt.Fprintf(&text, "Above water: %s the demand of every model", hold(a.GPUs))
	default:
		fmt.Fprintf(&text, "Under water: %s %s of the demand by weight; %d of %s short", hold(a.GPUs), share(a.Satisfied), short, plural(len(a.Models), "model"))
	}
	if a.Spare > 0 {
		text.WriteString("; " + strconv.FormatInt(a.Spare, 10) + " GPUs are too few for a further replica")
	}
	text.WriteString(".\n\n" + columns(rows, "lrrrrrrllrr"))
	text.WriteString("\nMost demand served by weight first, then the most room for the model that has the least.\n")
	if a.Moves != nil {
		movesText(&text, a.Moves)
		text.WriteString("\n")
	}
	if illustrative {
		text.WriteString(admin.IllustrativeNote + "\n")
	}
	v.text = text.String()
	return v
}

type capacityProfilesCmd struct{ output }

// Run lists what replicas can do.
func (c *capacityProfilesCmd) Run(env *Env) error {
	all := admin.CapacityProfiles{Note: admin.IllustrativeNote}
	v := view{data: &all, columns: []string{"profile", "gpus", "prefill_tokens_per_second", "decode_step_ms", "per_request_us", "per_token_ns", "kv_tokens", "slots", "basis"}}
	for _, k := range capacity.Profiles() {
		p := admin.KnownOf(k)
		all.Profiles = append(all.Profiles, p)
		slots := p.Slots
		if slots == 0 {
			slots = capacity.DefaultSlots
		}
		v.rows = append(v.rows, []string{
			p.Name, count(p.GPUs), count(p.PrefillRate), fixed(p.StepBase*1e3, 2), fixed(p.StepPerJob*1e6, 1), fixed(p.StepPerToken*1e9, 1), count(p.KVTokens), count(slots), p.Basis,
		})
	}
	if err := c.print(env.Stdout, v); err != nil {
		return err
	}
	fmt.Fprintln(env.Stderr, admin.IllustrativeNote)
	return nil
}

func fixed(f float64, decimals int) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
