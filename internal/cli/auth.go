package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/auth/jwt"
	"sluice/internal/config"
	"sluice/internal/egress"
	"sluice/internal/fakellm"
)

type authCmd struct {
	Explain authExplainCmd `cmd:"" help:"Say whose a signed token is, from standard input, as a gateway with the file would: its issuer, the checks, the claims and what they are mapped to. Needs no gateway; exits 4 if it is refused."`
}

type authExplainCmd struct {
	Config string `required:"" help:"The configuration file." type:"path" placeholder:"FILE"`
	output
}

// explained is a token as it is told.
type explained struct {
	jwt.Explanation
	Admitted bool   `json:"admitted"`
	Tenant   string `json:"tenant,omitempty"`
	Project  string `json:"project,omitempty"`
	User     string `json:"user,omitempty"`
	Key      string `json:"key,omitempty"`   // in the ledger
	Plan     string `json:"plan,omitempty"`  // empty where the file does not declare the tenant
	Class    string `json:"class,omitempty"` // of requests that ask for none
	Note     string `json:"note,omitempty"`
}

// Run explains a token. Nothing of it is shown before its signature was verified.
func (c *authExplainCmd) Run(_ context.Context, env *Env) error {
	cfg, err := config.Load(c.Config, env.Getenv)
	if err != nil {
		return err
	}
	if len(cfg.Auth.Issuers) == 0 {
		return &codedError{code: exitUsage, msg: shown(c.Config) + " has no issuers", hint: "declare them under auth.issuers"}
	}
	lookup, err := priceLookup()
	if err != nil {
		return err
	}
	snapshot, err := config.Compile(cfg, config.CompileOptions{Lookup: lookup, SimulatedURL: "http://" + fakellm.DefaultListen + "/v1"})
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(os.Stdin, 2*jwt.MaxToken))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	token := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(raw)), "Bearer "))
	if !jwt.Is(token) {
		return &codedError{code: exitUsage, msg: "standard input has no token: one is three parts between dots", hint: "write: sluice auth explain --config " + shown(c.Config) + " < token.txt"}
	}
	v := jwt.New(jwt.Options{Dialer: egress.New(egress.Options{})})
	defer v.Close()
	v.Use(snapshot.Issuers)
	fetched := v.Fetch(token)
	out := explain(v, token, snapshot.Records)
	if fetched != nil {
		out.Note = "the issuer's keys cannot be fetched: " + fetched.Error()
	}
	if err := c.print(env.Stdout, out.view()); err != nil {
		return err
	}
	if !out.Admitted {
		return &codedError{code: exitDenied, msg: out.Refusal, hint: cmp.Or(out.Note, out.Hint)}
	}
	return nil
}

// explain follows a token to what applies to it, as far as the file says.
func explain(v *jwt.Verifier, token string, records auth.Records) explained {
	out := explained{Explanation: v.Explain(token, time.Now())}
	if out.Refusal != "" {
		return out
	}
	b := out.Bearer
	out.Tenant, out.Project, out.User, out.Key = string(b.Tenant), string(cmp.Or(b.Project, sluice.DefaultProject)), string(b.User), string(b.Key)
	p, err := auth.Compile(auth.CompileOptions{}, records).Admit(&b)
	declared := false
	for i := range records.Tenants {
		declared = declared || records.Tenants[i].ID == b.Tenant
	}
	switch refusal, ok := errors.AsType[*sluice.Error](err); {
	case err == nil:
		out.Admitted, out.Plan, out.Class = true, string(p.Policy.Plan), p.Policy.Class.String()
	case !declared:
		out.Admitted, out.Note = true, "the file does not declare the tenant: it is admitted if the store has it"
	case ok:
		out.Refusal, out.Hint, out.Reason = refusal.Msg, refusal.Hint, refusal.Reason.String()
	}
	return out
}

func (e *explained) view() view {
	rows := pairs("issuer", cmp.Or(e.Name, "not known here"), "algorithm", e.Algorithm, "key id", e.KeyID)
	for _, c := range e.Claims {
		rows = append(rows, []string{"claim " + c.Claim, c.Value})
	}
	for _, r := range e.Rules {
		rows = append(rows, []string{r.Part + " by " + cmp.Or(r.From, "default"), cmp.Or(r.Word, "nothing")})
	}
	for _, k := range e.Keys {
		text := k.Kind
		if k.Unusable != "" {
			text = "not taken: it " + k.Unusable
		}
		rows = append(rows, []string{"published key " + cmp.Or(k.KeyID, "without an id"), text})
	}
	verdict := "refused: " + e.Refusal
	if e.Admitted {
		verdict = "admitted"
	}
	rows = append(rows, pairs("verdict", verdict, "reason", e.Reason, "tenant", e.Tenant, "project", e.Project, "user", e.User,
		"key", e.Key, "plan", e.Plan, "class", e.Class, "note", e.Note)...)
	return view{data: e, columns: fieldColumns, rows: rows}
}
