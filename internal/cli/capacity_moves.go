package cli

import (
	"fmt"
	"strings"
	"time"

	"sluice/internal/admin"
)

// movesText is the way to an allocation, with the commands in their order.
func movesText(b *strings.Builder, m *admin.CapacityMoves) {
	if len(m.Steps) == 0 {
		b.WriteString("\nNothing to move.\n")
	} else {
		b.WriteString("\nOne step after the other:\n")
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		fmt.Fprintf(b, "\n%d. %s: %s served", i+1, startText(s), share(s.Before))
		if len(s.Drain) > 0 {
			fmt.Fprintf(b, ", %s meanwhile", share(s.During))
		}
		fmt.Fprintf(b, ", then %s", share(s.After))
		if s.PaysIn > 0 {
			fmt.Fprintf(b, "; what that costs is made good in %s", seconds(s.PaysIn))
		}
		b.WriteString("\n")
		for _, line := range commands(s) {
			b.WriteString("   " + line + "\n")
		}
	}
	for _, k := range m.Kept {
		fmt.Fprintf(b, "\nNot moved: %s of %s: %s.\n", plural(int(k.Replicas), "more replica"), plain(k.Model), k.Why)
	}
	if len(m.Spread) > 0 && m.Spread[0].Domain != "" {
		rows := [][]string{{"model", "domain", "replicas", "of its replicas"}}
		for _, s := range m.Spread {
			rows = append(rows, []string{s.Model, s.Domain, count(s.Replicas), share(s.Share)})
		}
		b.WriteString("\n" + columns(rows, "llrr"))
	}
}

// commands are those of a step, with what to wait for between them.
func commands(s *admin.CapacityMove) (out []string) {
	for _, d := range s.Drain {
		out = append(out, "sluice backend drain "+plain(d.Backend))
	}
	if len(s.Drain) > 0 {
		out = append(out, fmt.Sprintf("# until sluice backend list shows none running there: at most %s", seconds(s.DrainWithin)))
	}
	// A name with a line break in it does not end the remark.
	return append(out, "# "+strings.Join(strings.Fields(startText(s)), " ")+": serves in "+seconds(s.Start))
}

func startText(s *admin.CapacityMove) string {
	text := fmt.Sprintf("start %s as %s on %s", plain(s.Model), s.Profile, plural(int(s.GPUs), "GPU"))
	if s.Domain != "" {
		text += " of " + plain(s.Domain)
	}
	return text
}

// seconds writes a time as people read it.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// milliseconds writes a latency.
func milliseconds(s float64) string {
	if s < 0.1 {
		return fixed(s*1000, 1) + " ms"
	}
	return fixed(s*1000, 0) + " ms"
}
