package live

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// A tenant has a contract for 4 of 16 places while two others of its weight flood
// the pool with short and long calls. Within its reserve it keeps its target: it
// waits for no place, or, where what it leaves idle is lent to short calls, for no
// longer than the reserve takes to come back. When it wants more, the rest takes its
// turn with everyone else: of 12 places a third. By FIFO, which knows no contract,
// it waits as long as the rest and gets what it asks for.
func TestContract(t *testing.T) {
	long(t)
	const warm, length = 30 * time.Second, 5 * time.Minute
	const reclaim = 2 * time.Second
	for _, tt := range []struct {
		name   string
		lend   sched.Lend
		fifo   bool
		target time.Duration
	}{
		{"none", sched.LendNone, false, 0},
		{"short", sched.LendShort, false, reclaim},
		{"fifo", sched.LendNone, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at(t, plan{
				backends: []backend{
					{steady(20 * time.Millisecond), route.Capacity{Concurrency: 8}},
					{steady(20 * time.Millisecond), route.Capacity{Concurrency: 8}},
				},
				sharing: sched.Policy{FIFO: tt.fifo, Contracts: []sched.Contract{{Tenant: "gold", Slots: 4, Lend: tt.lend, Reclaim: reclaim}}},
				queue:   route.QueueBounds{MaxWait: time.Hour},
				tenants: map[sluice.TenantID]sluice.Policy{"gold": {}, "x": {}, "y": {}},
			}, func(t *testing.T, s *site) {
				c := s.crowd()
				for _, id := range []sluice.TenantID{"x", "y"} {
					c.loop(20, 2*length, ask{tenant: id, in: 1, out: 40, whole: true})
					c.loop(20, 2*length, ask{tenant: id, in: 1, out: 250, whole: true})
				}
				time.Sleep(warm)
				for range 3 { // within the reserve, with pauses
					c.every(length-warm, func(int) (ask, time.Duration) {
						return ask{tenant: "gold", in: 1, out: 50, whole: true}, 1300 * time.Millisecond
					})
				}
				inside := func(least, most int) {
					t.Helper()
					if k := s.pool().Contracts; !tt.fifo && (len(k) != 1 || k[0].Inside < least || k[0].Inside > most) {
						t.Errorf("the status has contracts %+v, want %d to %d requests inside", k, least, most)
					}
				}
				time.Sleep(length - warm)
				inside(0, 3)
				c.loop(40, length, ask{tenant: "gold", in: 1, out: 100, whole: true}) // far beyond it
				time.Sleep(length - time.Second)
				inside(4, 4)
				got := c.all()
				for _, gs := range got {
					s.served(gs)
				}
				within := between(got["gold"], 0, length-time.Second)
				wait := quantile(within, 1000, waited)
				gold, _ := s.log.served("gold", length+warm, 2*length)
				x, _ := s.log.served("x", length+warm, 2*length)
				y, _ := s.log.served("y", length+warm, 2*length)
				others := float64(x+y) / 2
				t.Logf("%d calls within the reserve, longest wait %v; beyond it %.3f of what each other gets (gold %d, x %d, y %d)", len(within), wait, float64(gold)/others, gold, x, y)
				if keeps := wait <= tt.target; keeps == tt.fifo {
					t.Errorf("longest wait within the reserve %v, want %v", wait, tt.target)
				}
				// 4 places and a third of 12, against a third of 12.
				if share := float64(gold) / others; !tt.fifo && (share < 1.9 || share > 2.1) {
					t.Errorf("beyond the reserve it gets %.3f of what each other gets, want 2", share)
				}
				if even := float64(x) / float64(y); !tt.fifo && (even < 0.9 || even > 1.1) {
					t.Errorf("of two alike one gets %.3f times what the other gets", even)
				}
			})
		})
	}
}
