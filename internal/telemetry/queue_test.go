package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/sched"
)

// fullLevel is a pool in which there is something to tell of everything.
func fullLevel(id sluice.PoolID) PoolLevel {
	p := PoolLevel{Pool: id, Inflight: 3, Gathering: true}
	for c := range p.Classes {
		v := &p.Classes[c]
		*v = sched.ClassView{Class: sluice.Class(c), Waiting: 2, Oldest: time.Second, Gap: 40, Service: sched.Service{Rate: 100}}
		for i := range v.Refused {
			v.Refused[i] = int64(i + 1)
		}
	}
	for i := range 5 {
		p.Contracts = append(p.Contracts, sched.ContractView{
			Contract: sched.Contract{Tenant: sluice.TenantID(fmt.Sprintf("%s-t%d", id, i)), Slots: 4, KV: 1000, WorkPerSecond: 7}, Used: sched.Amounts{2, 500, 0}, Over: 1,
		})
	}
	return p
}

func TestQueueLevels(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	m.Watch(func() Levels {
		a, b := fullLevel("x"), fullLevel("y") // of no table: they share a series
		b.Classes[sluice.Batch].Oldest = time.Minute
		b.Gathering = false
		chat := fullLevel("chat")
		chat.Contracts = chat.Contracts[:1]
		return Levels{Pools: []PoolLevel{chat, a, b}}
	})
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_queue_depth{class="batch",pool="chat"} 2`,
		`sluice_queue_depth{class="batch",pool="other"} 4`,
		`sluice_queue_oldest_seconds{class="batch",pool="other"} 60`,
		`sluice_queue_service_rate{class="standard",pool="other"} 200`,
		`sluice_queue_fairness_gap{class="standard",pool="other"} 40`,
		`sluice_queue_refused_total{class="standard",pool="chat",reason="queue_full"} 5`,
		`sluice_queue_refused_total{class="standard",pool="other",reason="rate_limited"} 2`,
		`sluice_queue_gathering{pool="other"} 1`,
		`sluice_contract_reserve{dimension="slots",pool="chat",tenant="chat-t0"} 4`,
		`sluice_contract_used{dimension="kv_tokens",pool="chat",tenant="chat-t0"} 500`,
		`sluice_contract_overflow{pool="chat",tenant="chat-t0"} 1`,
		`sluice_contract_reserve{dimension="work_per_second",pool="other",tenant="other"} 70`,
		`sluice_contract_used{dimension="slots",pool="other",tenant="other"} 20`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the scrape has no %s", want)
		}
	}
	if strings.Contains(text, "x-t0") {
		t.Error("a tenant of a pool without a label has one")
	}
}

// TestContractsAreCapped declares more contracts than have series: what is beyond
// is one sum, and nothing is lost.
func TestContractsAreCapped(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	chat := PoolLevel{Pool: "chat"}
	for i := range MaxContracts * 3 {
		chat.Contracts = append(chat.Contracts, sched.ContractView{Contract: sched.Contract{Tenant: sluice.TenantID(fmt.Sprintf("t%04d", i)), Slots: 1}})
	}
	m.Watch(func() Levels { return Levels{Pools: []PoolLevel{chat}} })
	_, text := series(t, m)
	if got := strings.Count(text, "\nsluice_contract_reserve{"); got != MaxContracts+1 {
		t.Errorf("%d series, want %d", got, MaxContracts+1)
	}
	if want := fmt.Sprintf(`sluice_contract_reserve{dimension="slots",pool="other",tenant="other"} %d`, MaxContracts*2); !strings.Contains(text, want+"\n") {
		t.Errorf("the scrape has no %s", want)
	}
}
