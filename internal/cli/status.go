package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"sluice/internal/admin"
)

type statusCmd struct {
	What   string        `arg:"" optional:"" help:"A pool, or an open request (req_…), to look at closely; all pools if left out."`
	Tenant string        `help:"One tenant, in the pool that is named or in all." placeholder:"ID"`
	Limit  int           `default:"20" help:"Most rows of each kind (${default}); of tenants, those of each class of a pool."`
	Watch  bool          `short:"w" help:"Look again and again, until interrupted."`
	Every  time.Duration `default:"2s" help:"How often --watch looks (${default})." placeholder:"D"`
	connection
	output
}

// Run prints one picture of the gateway, or one after the other.
func (c *statusCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if !c.Watch {
		return c.look(ctx, api, env.Stdout)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.watch(ctx, api, env.Stdout)
}

// requestPrefix begins every request id.
const requestPrefix = "req_"

// look prints what is asked for.
func (c *statusCmd) look(ctx context.Context, api *client, to io.Writer) error {
	switch {
	case strings.HasPrefix(c.What, requestPrefix):
		return c.request(ctx, api, to)
	case c.What != "" || c.Tenant != "":
		return c.flows(ctx, api, to)
	}
	return c.gateway(ctx, api, to)
}

// watch prints the picture every now and then: on a terminal in its place,
// elsewhere below the one before. What the gateway cannot answer for now does not
// end it.
func (c *statusCmd) watch(ctx context.Context, api *client, to io.Writer) error {
	const clear = "\x1b[H\x1b[2J"
	if c.Every < 100*time.Millisecond {
		return &codedError{code: exitUsage, msg: "--every is too short", hint: "100ms is the least"}
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for first := true; ; first = false {
		var page bytes.Buffer
		err := c.look(ctx, api, &page)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && page.Len() == 0 {
			if first && exitCode(err) != exitUnavailable {
				return err
			}
			printError(&page, err)
		}
		switch {
		case terminal(to):
			fmt.Fprint(to, clear)
		case !first && c.Output == "table":
			fmt.Fprintln(to)
		case !first && c.Output == "yaml":
			fmt.Fprintln(to, "---")
		}
		if _, err := to.Write(page.Bytes()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// gateway prints the picture of all pools.
func (c *statusCmd) gateway(ctx context.Context, api *client, to io.Writer) error {
	var s admin.Status
	if err := api.get(ctx, "/admin/v1/status", map[string][]string{"limit": {count(c.Limit)}}, &s); err != nil {
		return err
	}
	v := view{data: s, columns: []string{"pool", "backend", "health", "running", "concurrency", "kv_tokens", "pool_waiting", "pool_oldest"}}
	for i := range s.Pools {
		p := &s.Pools[i]
		for j := range p.Backends {
			b := &p.Backends[j]
			v.rows = append(v.rows, []string{p.Pool, b.Backend, b.Health, count(b.Running), count(b.Concurrency), count(b.KVTokens), count(p.Waiting), span(p.OldestSeconds)})
		}
	}
	if c.Output == "table" {
		text, err := statusText(&s)
		if err != nil {
			return err
		}
		v.text = text
	}
	if err := c.print(to, v); err != nil {
		return err
	}
	return stateCode(s.State)
}

// stateCode is what the gateway's state exits with. A gateway that does not tell it is
// of an earlier version.
func stateCode(state string) error {
	switch state {
	case "ready", "":
		return nil
	case "degraded":
		return &codedError{code: exitDegraded}
	}
	return &codedError{code: exitUnavailable}
}

func statusText(s *admin.Status) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  up %s  %s  configuration %s\n", s.State, span(s.UptimeSeconds), buildText(s.Build), s.Config.Version)
	if s.Config.Since != nil {
		fmt.Fprintf(&b, "%s\n", inForce(&s.Config))
	}
	if s.Config.OffFile != "" {
		fmt.Fprintf(&b, "%s\n", plain(s.Config.OffFile))
	}
	if s.Config.LastError != "" {
		fmt.Fprintf(&b, "last reload failed: %s\n", plain(s.Config.LastError))
	}
	fmt.Fprintf(&b, "%d open, %d running, %d keys, ledger %d behind", s.Open, s.Running, s.Snapshot.Keys, s.Journal.LagEntries)
	if s.Journal.LagSeconds > 0 {
		fmt.Fprintf(&b, " (%s)", span(s.Journal.LagSeconds))
	}
	b.WriteString("\n")
	for _, d := range s.Dependencies {
		if d.State != "ok" {
			fmt.Fprintf(&b, "%s is %s: %s\n", plain(d.Name), d.State, plain(d.Detail))
		}
	}
	outText(&b, s)
	laddersText(&b, s)
	for _, p := range s.Snapshot.Problems {
		fmt.Fprintf(&b, "record: %s\n", plain(p))
	}
	pools := view{columns: []string{"pool", "waiting", "oldest", "wait", "backend", "health", "running", "of", "kv tokens"}}
	for i := range s.Pools {
		p := &s.Pools[i]
		for j := range p.Backends {
			k := &p.Backends[j]
			row := []string{"", "", "", "", k.Backend, healthText(k), count(k.Running), count(k.Concurrency), count(k.KVTokens)}
			if j == 0 {
				copy(row, []string{p.Pool, count(p.Waiting), span(p.OldestSeconds), arrivalWait(p)})
			}
			pools.rows = append(pools.rows, row)
		}
	}
	b.WriteString("\n")
	if err := table(&b, pools); err != nil {
		return "", err
	}
	more(&b, s.MorePools, "pool")
	for i := range s.Pools {
		if n := s.Pools[i].MoreBackends; n > 0 {
			fmt.Fprintf(&b, "(pool %s: %s, --limit N)\n", plain(s.Pools[i].Pool), plural(n, "more backend"))
		}
	}
	if err := demandText(&b, s); err != nil {
		return "", err
	}
	if err := regionsText(&b, s); err != nil {
		return "", err
	}
	if err := queueText(&b, s.Pools, false); err != nil {
		return "", err
	}
	top := view{columns: []string{"scope", "tenant", "id", "limit", "used", "held", "left", "of"}}
	for _, a := range s.Top {
		for _, k := range a.Counters {
			top.rows = append(top.rows, []string{a.Scope, a.Tenant, a.ID, k.Limit, k.Used.String(), k.Held.String(), k.Remaining.String(), k.Amount.String()})
		}
	}
	if len(top.rows) > 0 {
		b.WriteString("\n")
		if err := table(&b, top); err != nil {
			return "", err
		}
		more(&b, s.MoreTop, "scope")
	}
	return b.String(), nil
}

// more says that a table leaves rows out.
func more(b *strings.Builder, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "(%s, --limit N)\n", plural(n, "more "+what))
	}
}

type ledgerCmd struct {
	Verify ledgerVerifyCmd `cmd:"" help:"Compare the roll-ups with the entries. Exits 1 when they differ."`
}

type ledgerVerifyCmd struct {
	connection
	output
}

// Run verifies the ledger.
func (c *ledgerVerifyCmd) Run(ctx context.Context, env *Env) error {
	v, err := change[admin.Verification](ctx, &c.connection, request{http.MethodPost, "/admin/v1/ledger/verify", false, nil})
	if err != nil {
		return err
	}
	rows := pairs("ok", fmt.Sprint(v.OK), "entries", count(v.Entries), "roll-up rows", count(v.Rows))
	for _, d := range v.Differences {
		rows = append(rows, []string{"difference", d})
	}
	if err := c.print(env.Stdout, view{data: v, columns: fieldColumns, rows: rows}); err != nil {
		return err
	}
	if !v.OK {
		return &codedError{code: exitFailed, msg: "the roll-ups differ from the entries", hint: "the entries are the account; report this with the output above"}
	}
	return nil
}

type versionCmd struct{ output }

// Run prints what this binary is.
func (c *versionCmd) Run(env *Env) error {
	b := admin.ReadBuild()
	v := view{data: b, columns: fieldColumns, rows: pairs("version", b.Version, "revision", b.Revision, "go", b.Go)}
	v.text = "sluice " + buildText(b) + "\n"
	return c.print(env.Stdout, v)
}

func buildText(b admin.Build) string {
	s := b.Version
	if b.Revision != "" {
		s += " " + b.Revision
	}
	return s + " " + b.Go
}

// inForce tells how the configuration came to be in force.
func inForce(c *admin.ConfigStatus) string {
	name := "version"
	if c.Number > 0 {
		name += " " + count(c.Number)
	}
	s := fmt.Sprintf("%s in force since %s, by %s", name, stamp(c.Since), c.Author)
	if c.Reason != "" {
		s += ": " + c.Reason
	}
	return plain(s)
}
