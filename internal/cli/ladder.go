package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/admin"
	"sluice/internal/ladder"
)

const laddersPath = "/admin/v1/ladders"

type ladderCmd struct {
	Status  ladderStatusCmd  `cmd:"" help:"Where each pool's ladder stands, and why."`
	Pin     ladderPinCmd     `cmd:"" help:"Keep a pool's ladder on a tier for a while, whatever its signals are."`
	Unpin   ladderUnpinCmd   `cmd:"" help:"Leave a pool's ladder to its signals again, from where it stands."`
	Preview ladderPreviewCmd `cmd:"" help:"What a tier would have done to the last minutes' requests."`
}

type ladderStatusCmd struct {
	Pool string `arg:"" optional:"" help:"One pool; all if left out."`
	connection
	output
}

// Run prints the ladders.
func (c *ladderStatusCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Ladders []admin.LadderRow `json:"ladders"`
	}
	if err := api.get(ctx, laddersPath, nil, &out); err != nil {
		return err
	}
	if c.Pool != "" {
		out.Ladders = slices.DeleteFunc(out.Ladders, func(r admin.LadderRow) bool { return r.Pool != c.Pool })
		if len(out.Ladders) == 0 {
			return &codedError{code: exitNotFound, msg: fmt.Sprintf("there is no pool %q whose ladder is not off", c.Pool), hint: "sluice ladder status lists them"}
		}
	}
	v := view{data: out.Ladders, columns: []string{"pool", "mode", "tier", "name", "since", "why", "oldest", "kv", "refused", "deferred", "pin"}}
	for i := range out.Ladders {
		l := &out.Ladders[i]
		v.rows = append(v.rows, []string{
			l.Pool, l.Mode, tierText(&l.LadderStatus), l.Name, span(l.SinceSeconds), l.Why, span(l.Signals.OldestSeconds), partText(l.Signals.KV), partText(l.Signals.Refused), count(l.Deferred), pinText(l.Pin),
		})
	}
	if c.Output == "table" {
		var b strings.Builder
		if err := table(&b, v); err != nil {
			return err
		}
		for i := range out.Ladders {
			b.WriteString(doneText(&out.Ladders[i]))
		}
		v.text = b.String()
	}
	return c.print(env.Stdout, v)
}

// partText is a part of 1 in a cell.
func partText(x float64) string { return strconv.FormatFloat(100*x, 'f', -1, 64) + "%" }

// tierText is the tier that is felt, and in shadow the one that would be.
func tierText(l *admin.LadderStatus) string {
	if l.Tier == l.Stands {
		return count(l.Tier)
	}
	return fmt.Sprintf("%d (would be %d)", l.Tier, l.Stands)
}

func pinText(p *admin.LadderPin) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("tier %d until %s, by %s: %s", p.Tier, stamp(&p.Expires), p.By, p.Reason)
}

// doneText is a line of what a ladder did, empty if that is nothing.
func doneText(l *admin.LadderRow) string {
	var parts []string
	for _, effect := range []struct{ word, text string }{
		{"clamp", "%d answers bounded"}, {"context", "%d inputs too long"}, {"smaller", "%d served by a smaller model"}, {"offer", "%d offered the asynchronous path"}, {"shed", "%d shed"},
	} {
		if n := l.Done[effect.word]; n > 0 {
			parts = append(parts, fmt.Sprintf(effect.text, n))
		}
	}
	if parts == nil {
		return ""
	}
	verb := "since the start"
	if l.Mode == ladder.Watch.String() {
		verb = "since the start, were it on"
	}
	return fmt.Sprintf("pool %s %s: %s\n", plain(l.Pool), verb, strings.Join(parts, ", "))
}

// laddersText tells of ladders that have left the ground.
func laddersText(b *strings.Builder, s *admin.Status) {
	for i := range s.Pools {
		l := s.Pools[i].Ladder
		if l == nil || l.Stands == 0 && l.Pin == nil {
			continue
		}
		what := fmt.Sprintf("TIER %d, %s,", l.Tier, l.Name)
		if l.Tier != l.Stands {
			what = fmt.Sprintf("would be on tier %d, %s,", l.Stands, l.Name)
		}
		fmt.Fprintf(b, "pool %s: %s for %s since %s", plain(s.Pools[i].Pool), what, span(l.SinceSeconds), l.Why)
		if l.Pin != nil {
			fmt.Fprintf(b, "; pinned: %s", plain(pinText(l.Pin)))
		}
		if l.Deferred > 0 {
			fmt.Fprintf(b, "; %s of batch deferred", plural(l.Deferred, "request"))
		}
		b.WriteString("\n")
	}
}

type ladderPinCmd struct {
	Pool   string        `arg:"" help:"Its name."`
	Tier   string        `arg:"" help:"0 or none, 1 or clamp, 2 or context, 3 or defer, 4 or smaller, 5 or shed."`
	For    time.Duration `default:"15m" help:"How long, at most 24h (${default}). Then the ladder goes on by itself." placeholder:"D"`
	Reason string        `required:"" help:"Why: it stands in the status, the log and the metrics of everyone." placeholder:"TEXT"`
	Author string        `help:"Who; the name of the admin token if left out." placeholder:"NAME"`
	connection
}

// tierNamed is a tier by its number or name.
func tierNamed(s string) (int, error) {
	for t := range ladder.NumTiers {
		if s == t.String() || s == strconv.Itoa(int(t)) {
			return int(t), nil
		}
	}
	return 0, &codedError{code: exitUsage, msg: fmt.Sprintf("%q is not a tier", s), hint: "write 0 to 5, or none, clamp, context, defer, smaller or shed"}
}

// within refuses a time of a flag that is not from a second to the most that it may be.
func within(flag string, d, most time.Duration) error {
	if d >= time.Second && d <= most {
		return nil
	}
	return &codedError{code: exitUsage, msg: fmt.Sprintf("%s: %s is out of range", flag, d), hint: fmt.Sprintf("write a time from 1s to %s", most)}
}

// Run pins a ladder.
func (c *ladderPinCmd) Run(ctx context.Context, env *Env) error {
	tier, err := tierNamed(c.Tier)
	if err != nil {
		return err
	}
	if err := within("--for", c.For, ladder.MaxPin); err != nil {
		return err
	}
	body := struct {
		Tier    int    `json:"tier"`
		Seconds int64  `json:"seconds"`
		Author  string `json:"author,omitempty"`
		Reason  string `json:"reason"`
	}{tier, int64(c.For / time.Second), c.Author, c.Reason}
	done := fmt.Sprintf("pool %s is pinned to tier %d for %s", c.Pool, tier, c.For)
	return order(ctx, &c.connection, env, request{http.MethodPut, laddersPath + "/" + seg(c.Pool) + "/pin", false, body}, done, done)
}

type ladderUnpinCmd struct {
	Pool string `arg:"" help:"Its name."`
	connection
}

// Run unpins a ladder.
func (c *ladderUnpinCmd) Run(ctx context.Context, env *Env) error {
	return order(ctx, &c.connection, env, request{http.MethodDelete, laddersPath + "/" + seg(c.Pool) + "/pin", false, nil},
		"pool "+c.Pool+" goes by its signals again", "pool "+c.Pool+" was not pinned")
}

type ladderPreviewCmd struct {
	Pool string        `arg:"" help:"Its name."`
	Tier string        `arg:"" help:"As of pin."`
	Last time.Duration `default:"5m" help:"How much of the past is played, up to 30m (${default})." placeholder:"D"`
	connection
	output
}

// Run plays the last minutes with a tier and without.
func (c *ladderPreviewCmd) Run(ctx context.Context, env *Env) error {
	tier, err := tierNamed(c.Tier)
	if err != nil {
		return err
	}
	if err := within("--last", c.Last, 30*time.Minute); err != nil {
		return err
	}
	body := struct {
		Tier    int   `json:"tier"`
		Seconds int64 `json:"seconds"`
	}{tier, int64(c.Last / time.Second)}
	p, err := change[admin.LadderPreview](ctx, &c.connection, request{http.MethodPost, laddersPath + "/" + seg(c.Pool) + "/preview", false, body})
	if err != nil {
		return err
	}
	v := view{data: p, columns: []string{"figure", "ledger", "played with tier 0", "with tier " + count(p.Tier)}}
	v.rows = previewRows(&p)
	if c.Output == "table" {
		var b strings.Builder
		fmt.Fprintf(&b, "%s of pool %s from %s to %s, played on the engine that serves\n\n", plural(int(p.Requests), "request"), plain(p.Pool), stamp(&p.From), stamp(&p.To))
		if err := table(&b, v); err != nil {
			return err
		}
		if p.Left > 0 {
			fmt.Fprintf(&b, "(%s beyond the bound)\n", plural(int(p.Left), "more request"))
		}
		agreementText(&b, &p)
		v.text = b.String()
	}
	return c.print(env.Stdout, v)
}

// agreementText says how far what is played without a tier can be relied on.
func agreementText(b *strings.Builder, p *admin.LadderPreview) {
	if p.Agrees {
		b.WriteString("\nplayed with tier 0, as many have a place as the ledger says, within 5% of the requests\n")
	} else {
		b.WriteString("\nplayed with tier 0, more or fewer have a place than the ledger says, by more than 5% of the requests: compare the two that are played\n")
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(b, "- %s\n", plain(r))
	}
}

func previewRows(p *admin.LadderPreview) [][]string {
	row := func(name string, f func(r *admin.PreviewRun) string) []string {
		return []string{name, f(&p.Ledger), f(&p.Without), f(&p.With)}
	}
	rows := [][]string{
		row("goodput per second", func(r *admin.PreviewRun) string { return strconv.FormatFloat(r.GoodputPerSecond, 'f', 2, 64) }),
		row("completed", func(r *admin.PreviewRun) string { return count(r.Completed) }),
		row("shed", func(r *admin.PreviewRun) string { return count(r.Shed) }),
		row("failed or left", func(r *admin.PreviewRun) string { return count(r.Ended) }),
		row("waiting at the end", func(r *admin.PreviewRun) string { return count(r.Waiting) }),
		row("answers clamped", func(r *admin.PreviewRun) string { return count(r.Clamped) }),
		row("tokens clamped", func(r *admin.PreviewRun) string { return count(r.ClampedTokens) }),
	}
	for i := range p.With.Classes {
		name := p.With.Classes[i].Class
		of := func(r *admin.PreviewRun) *admin.PreviewClass {
			for k := range r.Classes {
				if r.Classes[k].Class == name {
					return &r.Classes[k]
				}
			}
			return &admin.PreviewClass{}
		}
		rows = append(rows,
			row(name+" completed", func(r *admin.PreviewRun) string { return count(of(r).Completed) }),
			row(name+" shed", func(r *admin.PreviewRun) string { return count(of(r).Shed) }),
			row(name+" waiting at the end", func(r *admin.PreviewRun) string { return count(of(r).Waiting) }),
			row(name+" wait p50", func(r *admin.PreviewRun) string { return span(of(r).WaitP50Seconds) }),
			row(name+" wait p99", func(r *admin.PreviewRun) string { return span(of(r).WaitP99Seconds) }))
	}
	return rows
}
