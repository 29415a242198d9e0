package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/internal/admin"
)

// figureOf writes a number for a reader: thousands apart, and decimals where
// they say something.
func figureOf(f float64) string {
	decimals := 0
	switch {
	case f == math.Trunc(f):
	case math.Abs(f) < 1:
		decimals = 3
	case math.Abs(f) < 1000:
		decimals = 1
	}
	text := strconv.FormatFloat(f, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if rest = strings.TrimRight(rest, "0"); rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}

// share writes a share, without decimals unless it is small or near the whole.
func share(f float64) string {
	p := f * 100
	if p != math.Trunc(p) && (p < 10 || p > 98 && p < 102) {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return figureOf(math.Round(p)) + " %"
}

// factor writes a factor.
func factor(f float64) string {
	if f < 10 {
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return figureOf(math.Round(f*10) / 10)
}

// ratio writes a factor with its sign, such as 10.5×.
func ratio(f float64) string {
	if f == math.Trunc(f) || f >= 10 {
		return figureOf(math.Round(f*10)/10) + "×"
	}
	return strings.TrimRight(strings.TrimRight(factor(f), "0"), ".") + "×"
}

// bar is a share as a bar of 20; what is beyond the whole is marked.
func bar(f float64) string {
	const width = 20
	n := min(int(math.Round(f*width)), width)
	b := strings.Repeat("█", n) + strings.Repeat("░", width-n)
	if f > 1 {
		return b + "▶"
	}
	return b + " "
}

// water says in a few words how a fleet stands.
func water(s *admin.CapacityState) string {
	where := "above"
	switch {
	case s.Replicas == 0:
		return "under water: " + plural(int(s.GPUs), "GPU") + " make no replica"
	case s.Factor == 0:
		return "above water: nothing is asked for"
	case s.Over:
		where = "under"
	}
	return fmt.Sprintf("%s water: %s %s times this demand", where, hold(s.GPUs), factor(math.Floor(s.Factor*100)/100))
}

// hold is so many GPUs as the subject of a sentence.
func hold(gpus int64) string {
	if gpus == 1 {
		return "1 GPU holds"
	}
	return strconv.FormatInt(gpus, 10) + " GPUs hold"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// headline answers over or under water in one line.
func headline(p *admin.CapacityPlan) string {
	line := water(&p.CapacityState) + ", " + dimensionWord(p.Binding) + " binds."
	switch {
	case p.Factor == 0 && p.Replicas > 0:
		return water(&p.CapacityState) + "."
	case p.GPUsAssumed:
		line = fmt.Sprintf("above water with %s, the fewest: room for %s times this demand, %s binds.", plural(int(p.GPUs), "GPU"), factor(math.Floor(p.Factor*100)/100), dimensionWord(p.Binding))
	}
	if p.Lost != nil {
		line += " Without " + share(p.Lose) + " of them, " + water(p.Lost) + "."
	}
	return line
}

func dimensionWord(binding string) string {
	if binding == "kv" {
		return "memory"
	}
	return binding
}

// dimension is a line of a plan: demand, supply and use.
type dimension struct {
	name, unit     string
	demand, supply float64
	used           func(*admin.CapacityUtilisation) float64
}

func dimensionsOf(s *admin.CapacityState) []dimension {
	return []dimension{
		{"prefill", "tokens/s", s.Prefill, s.Supply.Prefill, func(u *admin.CapacityUtilisation) float64 { return u.Prefill }},
		{"decode", "tokens/s", s.Output, s.Supply.Output, func(u *admin.CapacityUtilisation) float64 { return u.Decode }},
		{"kv", "tokens", float64(s.KVHeldTokens), float64(s.Supply.KV), func(u *admin.CapacityUtilisation) float64 { return u.KV }},
		{"engine", "", 0, 0, func(u *admin.CapacityUtilisation) float64 { return u.Engine }},
	}
}

// capacityView is a plan for readers, and a row per dimension for csv.
func capacityView(p *admin.CapacityPlan, what string) view {
	v := view{data: p, columns: []string{"dimension", "unit", "demand", "supply", "utilisation", "lost_demand", "lost_supply", "lost_utilisation", "binding"}}
	var text strings.Builder
	text.WriteString(capital(headline(p)) + "\n\n")
	fmt.Fprintf(&text, "%s, on %s of %s (%s a replica)\n\n", what, plural(int(p.GPUs), "GPU"), p.Profile, plural(int(p.GPUsPerReplica), "GPU"))
	lost := []dimension{}
	if p.Lost != nil {
		lost = dimensionsOf(p.Lost)
	}
	rows := [][]string{{"", "demand", "supply", "used", ""}}
	if p.Lost != nil {
		rows[0] = append(rows[0], "without "+share(p.Lose), "")
	}
	for i, d := range dimensionsOf(&p.CapacityState) {
		binds := ""
		if d.name == p.Binding {
			binds = "binds"
		}
		cells := []string{dimensionWord(d.name), "", "", "", ""}
		if d.unit != "" {
			cells[1], cells[2] = figureOf(d.demand)+" "+d.unit, figureOf(d.supply)+" "+d.unit
		} else {
			cells[0] = "engines' time"
		}
		record := []string{d.name, d.unit, number(d.demand), number(d.supply), "", "", "", "", binds}
		if p.Utilisation != nil {
			u := d.used(p.Utilisation)
			cells[3], cells[4], record[4] = share(u), bar(u), number(u)
		}
		if p.Lost != nil && p.Lost.Utilisation != nil {
			u := d.used(p.Lost.Utilisation)
			cells = append(cells, share(u), bar(u))
			record[5], record[6], record[7] = number(lost[i].demand), number(lost[i].supply), number(u)
		}
		rows = append(rows, append(cells, binds))
		v.rows = append(v.rows, record)
	}
	text.WriteString(columns(rows, "lrrrlrl"))
	text.WriteString("\n" + columns(planFacts(p), "ll"))
	text.WriteString("\n" + planNotes(p))
	v.text = text.String()
	return v
}

// planFacts are what a plan says beside its dimensions.
func planFacts(p *admin.CapacityPlan) [][]string {
	input := figureOf(p.Input) + " tokens/s"
	if p.Prefill != p.Input {
		input += ", of which " + figureOf(p.Prefill) + " are computed and the rest is cached"
	}
	facts := [][]string{
		{"input", input},
		{"output", figureOf(p.Output) + " tokens/s"},
		{"memory in use", figureOf(float64(p.KVTokens)) + " tokens at full batches, " + figureOf(float64(p.KVHeldTokens)) + " with the room for answers under way"},
		{"room for", room(&p.CapacityState)},
	}
	needed := strconv.FormatInt(p.GPUsNeeded, 10)
	if p.Lost != nil {
		facts[3][1] += "; without " + share(p.Lose) + ": " + room(p.Lost)
		needed += "; " + strconv.FormatInt(p.Lost.GPUsNeeded, 10) + " to go on without " + share(p.Lose) + " of them"
	}
	facts = append(facts, []string{"GPUs needed", needed})
	if x := p.Expected; x != nil && x.Batch > 0 {
		facts = append(facts, []string{"expect", fmt.Sprintf("%s ms per output token, a batch of %s, %s tokens in the memory of a replica",
			strconv.FormatFloat(x.Step*1000, 'f', 1, 64), strconv.FormatFloat(x.Batch, 'f', 1, 64), figureOf(float64(x.KV)))})
	}
	return facts
}

func room(s *admin.CapacityState) string {
	switch {
	case s.Over && s.Replicas > 0:
		return fmt.Sprintf("%s requests/s less", figureOf(math.Ceil((s.Requests-s.Requests*s.Factor)*1000)/1000))
	case s.Over:
		return "none"
	}
	return fmt.Sprintf("%s requests/s more", figureOf(math.Floor(s.Spare*1000)/1000))
}

// planNotes are what a reader must know to take the figures rightly.
func planNotes(p *admin.CapacityPlan) string {
	notes := "Prefill and decode take turns on an engine: its time is the sum of both."
	if p.MemoryBound {
		notes += fmt.Sprintf("\nMemory bounds the batch to %d requests a replica.", p.Batch)
	}
	if p.Target < 1 {
		notes += "\nPlanned for " + share(p.Target) + " of the engines' time."
	}
	if p.Illustrative {
		notes += "\n" + admin.IllustrativeNote
	}
	return notes + "\n"
}

// number writes a number for a program.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// columns aligns cells, each column to the side that sides says (l or r, the last
// one for all that follow).
func columns(rows [][]string, sides string) string {
	var width []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i > 0 {
				line.WriteString("  ")
			}
			if sides[min(i, len(sides)-1)] == 'r' {
				line.WriteString(pad + c)
			} else {
				line.WriteString(c + pad)
			}
		}
		b.WriteString(strings.TrimRight(plain(line.String()), " ") + "\n")
	}
	return b.String()
}

// mixView is a comparison for readers, and a row per workload for csv.
func mixView(m *admin.CapacityMix) view {
	v := view{data: m, columns: []string{"side", "tenant", "requests_per_second", "input_tokens_per_second", "output_tokens_per_second", "engine_share"}}
	rows := [][]string{{"", "", "requests/s", "input tokens/s", "output tokens/s", "of the engines' time"}}
	for i := range m.Rows {
		r := &m.Rows[i]
		v.rows = append(v.rows, []string{r.Side, r.Tenant, number(r.Requests), number(r.Input), number(r.Output), number(r.Share)})
		rows = append(rows, []string{r.Side, r.Tenant, figureOf(r.Requests), figureOf(r.Input), figureOf(r.Output), share(r.Share)})
	}
	total := func(side string, p *admin.CapacityPlan) {
		rows = append(rows, []string{side, "all", figureOf(p.Requests), figureOf(p.Input), figureOf(p.Output), ""})
	}
	var text strings.Builder
	if m.After == nil {
		text.WriteString(capital(headline(&m.Before)) + "\n")
	} else {
		after := *m.After
		after.GPUsAssumed = false // it is what the mix before needs
		text.WriteString("After the change, " + headline(&after) + "\nBefore it, " + headline(&m.Before) + "\n")
		fmt.Fprintf(&text, "\nInput tokens/s %s, output tokens/s %s, memory %s, engines' time %s, at requests/s %s.\n",
			ratio(m.Ratios.Input), ratio(m.Ratios.Output), ratio(m.Ratios.KV), ratio(m.Ratios.Engine), ratio(m.Ratios.Requests))
	}
	total("before", &m.Before)
	if m.After != nil {
		total("after", m.After)
		rows = append(rows, []string{"ratio", "", ratio(m.Ratios.Requests), ratio(m.Ratios.Input), ratio(m.Ratios.Output), ""})
	}
	text.WriteString("\n" + columns(rows, "llrrrr") + "\n" + columns(mixUse(m), "lrrrrr"))
	text.WriteString("\n" + planNotes(&m.Before))
	v.text = text.String()
	return v
}

// mixUse is how much of each dimension both sides use.
func mixUse(m *admin.CapacityMix) [][]string {
	head := []string{"used", "prefill", "decode", "memory", "engines' time", "GPUs needed"}
	line := func(side string, s *admin.CapacityState) []string {
		if s.Utilisation == nil {
			return []string{side, "", "", "", "", strconv.FormatInt(s.GPUsNeeded, 10)}
		}
		u := s.Utilisation
		return []string{side, share(u.Prefill), share(u.Decode), share(u.KV), share(u.Engine), strconv.FormatInt(s.GPUsNeeded, 10)}
	}
	out := [][]string{head}
	for _, side := range []struct {
		name string
		plan *admin.CapacityPlan
	}{{"before", &m.Before}, {"after", m.After}} {
		if side.plan == nil {
			continue
		}
		out = append(out, line(side.name, &side.plan.CapacityState))
		if side.plan.Lost != nil {
			out = append(out, line(side.name+", without "+share(side.plan.Lose), side.plan.Lost))
		}
	}
	return out
}
