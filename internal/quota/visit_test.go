package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// TestReopenIsOpen: whoever comes, under whatever policy, finds the accounts and the
// limits that he would find if nothing was remembered of the last time.
func TestReopenIsOpen(t *testing.T) {
	reopened := 0
	rapid.Check(t, func(t *rapid.T) {
		plain, quick := quota.NewBook(), quota.NewBook()
		plain.Bound(4, 2)
		quick.Bound(4, 2)
		limits := rapid.Custom(func(t *rapid.T) (l []sluice.Limit) {
			for _, d := range []sluice.Dimension{sluice.Requests, sluice.Spend, sluice.Concurrency} {
				if n := rapid.Int64Range(-2, 3).Draw(t, "limit"); n > 0 {
					w := map[sluice.Dimension]sluice.Window{sluice.Requests: sluice.PerSecond, sluice.Spend: sluice.PerHour}[d]
					l = append(l, limit(d, w, n))
				}
			}
			return l
		})
		policies := make([]*sluice.Policy, 3)
		for i := range policies {
			policies[i] = &sluice.Policy{Mode: rapid.SampledFrom([]sluice.LimitMode{sluice.Enforce, sluice.Enforce, sluice.Shadow}).Draw(t, "mode")}
			for s := sluice.ScopeKey; s <= sluice.ScopeTenantModel; s++ {
				policies[i].Limits[s] = limits.Draw(t, "limits")
			}
		}
		shared := [][]sluice.Limit{limits.Draw(t, "edition"), limits.Draw(t, "edition")} // by edition
		pick := func(of string, n int) string { return fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, of)) }
		origins := make([]origin, 4)
		for i := range origins {
			origins[i] = origin{
				key: pick("key", 2), user: pick("user", 3), project: pick("project", 2), model: pick("model", 2),
				policy: rapid.SampledFrom(policies).Draw(t, "policy"), edition: rapid.IntRange(0, 1).Draw(t, "edition"),
			}
		}
		visits := map[string]quota.Visit{} // by key
		last := map[string]origin{}        // of the visits
		var open [][2]*quota.Reservation
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			if len(open) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				used := quota.Amounts{sluice.Requests: 1, sluice.Spend: rapid.Int64Range(0, 1).Draw(t, "used")}
				plain.Settle(now, open[i][0], used)
				quick.Settle(now, open[i][1], used)
				open = append(open[:i], open[i+1:]...)
				continue
			}
			as := rapid.SampledFrom(origins).Draw(t, "origin")
			claims := as.claims(shared[as.edition])
			one, two := &quota.Reservation{}, &quota.Reservation{}
			changed, changedToo := plain.Open(now, one, claims), false
			usual := rapid.IntRange(0, 4).Draw(t, "usual") > 0
			visit := visits[as.key]
			if usual && last[as.key] == as && quick.Reopen(now, two, &visit) {
				reopened++
			} else if changedToo = quick.Open(now, two, claims); usual {
				quick.Remember(two, len(claims), &visit)
				visits[as.key], last[as.key] = visit, as
			}
			need := quota.Amounts{sluice.Requests: 1, sluice.Spend: rapid.Int64Range(0, 2).Draw(t, "spend"), sluice.Concurrency: 1}
			got, want := reserved(quick, now, two, need), reserved(plain, now, one, need)
			if got != want || changed != changedToo || plain.Len() != quick.Len() {
				t.Fatalf("%+v\nreopened: %s, %t, %d accounts\nopened:   %s, %t, %d accounts", as, got, changedToo, quick.Len(), want, changed, plain.Len())
			}
			if one.Would() == nil && rapid.Bool().Draw(t, "stays") {
				open = append(open, [2]*quota.Reservation{one, two})
				continue
			}
			plain.Release(now, one)
			quick.Release(now, two)
		}
	})
	if reopened == 0 {
		t.Error("nothing was reopened")
	}
}

// origin is what the claims of a request follow from.
type origin struct {
	key, user, project, model string
	policy                    *sluice.Policy
	edition                   int
}

func (o *origin) claims(shared []sluice.Limit) (claims []quota.Claim) {
	parts := [...]string{sluice.ScopeKey: o.key, sluice.ScopeUser: o.user, sluice.ScopeProject: o.project, sluice.ScopeTenant: "", sluice.ScopeTenantModel: o.model}
	for s := sluice.ScopeKey; s <= sluice.ScopeTenantModel; s++ {
		if s == sluice.ScopeRun {
			continue
		}
		claims = append(claims, quota.Claim{Owner: quota.Owner{Scope: s, ID: "t", Part: parts[s]}, Limits: o.policy.Limits[s], Shadow: o.policy.Mode == sluice.Shadow})
	}
	return append(claims, quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeModel, ID: o.model}, Limits: shared}, quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeFleet}, Limits: shared})
}

// reserved tells of a reservation's accounts, and what became of it.
func reserved(b *quota.Book, now time.Time, r *quota.Reservation, need quota.Amounts) string {
	var owners []string
	for _, a := range r.Accounts() {
		owners = append(owners, ownerText(a.Owner()))
	}
	text := fmt.Sprint(owners)
	f := b.Reserve(now, r, need, quota.Amounts{})
	switch {
	case f != nil:
		text += refusalText(now, f)
	case b.TakeGauges(r, need) != nil:
		text += refusalText(now, b.GaugeRefusal(now, r, need))
	}
	if w := r.Would(); w != nil {
		text += " would be " + refusalText(now, w)
	}
	return text + b.Limits(now, r, nil).String()
}
