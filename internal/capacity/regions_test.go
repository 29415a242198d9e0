package capacity

import (
	"testing"
)

// load is so many requests per second of 800 tokens in and 200 out.
func load(t *testing.T, rps string) []Workload {
	t.Helper()
	var r Rate
	if err := r.UnmarshalText([]byte(rps)); err != nil {
		t.Fatal(err)
	}
	return []Workload{{Rate: r, Input: Alike(800), Output: Alike(200)}}
}

func TestPlanRegions(t *testing.T) {
	replica, err := ReplicaNamed("")
	if err != nil {
		t.Fatal(err)
	}
	region := func(name string, replicas int64, rps string, stated ...Amount) Region {
		r := Region{Name: name, Replica: replica, Replicas: replicas, Workloads: load(t, rps)}
		for _, s := range stated {
			r.Stated = &s
		}
		return r
	}
	small := region("c", 1, "1")
	small.Workloads = nil
	plans, err := PlanRegions([]Region{region("a", 4, "20"), region("b", 2, "20", Ratio(1, 10)), small})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := plans[0], plans[1], plans[2]
	one, err := Solve(Question{Workloads: load(t, "20"), Replica: replica, GPUs: 4 * replica.GPUs})
	if err != nil {
		t.Fatal(err)
	}
	used := one.Utilisation.Engine
	if !a.Used.Equal(used) || !b.Used.Equal(used.Times(Int(2))) || c.Used.Sign() != 0 || c.Known {
		t.Errorf("they use %v, %v and %v, want %v, twice that and nothing", a.Used, b.Used, c.Used, used)
	}
	left := Int(1).Minus(used)
	if gap := left.Minus(a.Headroom); gap.Sign() < 0 || gap.Cmp(Ratio(1, 100)) >= 0 || !a.InForce.Equal(a.Headroom) {
		t.Errorf("a has a headroom of %v, in force %v, and %v is left", a.Headroom, a.InForce, left)
	}
	if !b.InForce.Equal(Ratio(1, 10)) || !c.Headroom.Equal(Int(1)) {
		t.Errorf("b has %v in force, c leaves %v", b.InForce, c.Headroom)
	}
	// What a asks for would use twice as much of b, and four times as much of c.
	want := b.InForce.Over(used.Times(Int(2))).Plus(c.InForce.Over(used.Times(Int(4))))
	if !a.Absorbed.Equal(want) {
		t.Errorf("of a's demand %v is absorbed, want %v", a.Absorbed, want)
	}
	if c.Absorbed.Sign() != 0 {
		t.Errorf("%v of an unknown demand is absorbed", c.Absorbed)
	}
}

// What moves finds no cache that knows its prompts, so it asks for more than it did at
// home.
func TestMovedDemandIsCold(t *testing.T) {
	replica, err := ReplicaNamed("")
	if err != nil {
		t.Fatal(err)
	}
	at := func(hit Share) Amount {
		w := load(t, "20")
		w[0].Hit = hit
		plans, err := PlanRegions([]Region{{Name: "a", Replica: replica, Replicas: 2, Workloads: w}, {Name: "b", Replica: replica, Replicas: 2}})
		if err != nil {
			t.Fatal(err)
		}
		return plans[0].Absorbed
	}
	if cold, warm := at(Share{}), at(Share{Ratio(9, 10)}); !cold.Equal(warm) {
		t.Errorf("with a cache at home %v is absorbed, without %v", warm, cold)
	}
}

func TestPlanRegionsRefuses(t *testing.T) {
	if _, err := PlanRegions(make([]Region, MaxRegions+1)); err == nil {
		t.Error("no bound on regions")
	}
	tiny := Replica{Name: "tiny", GPUs: 1}
	tiny.Profile.PrefillRate, tiny.Profile.KVCapacity = 1000, 10
	if _, err := PlanRegions([]Region{{Name: "a", Replica: tiny, Replicas: 1, Workloads: load(t, "1")}}); err == nil {
		t.Error("a demand that fits no replica has a plan")
	}
}
