package fleet

import "time"

// Named is a profile by name. All are illustrative: a place to start from, each
// field to be overridden by what is known, not a promise about hardware.
type Named struct {
	Name      string
	Model     string
	GPU       string
	GPUs      int64 // of one replica
	Precision Precision
	Basis     Basis
	Profile   Profile
}

// Basis is where a named profile's figures come from.
type Basis uint8

// The bases.
const (
	// Seed is a profile with its prefill rate rounded down to about half of the
	// peak over all parameters, attention included, and steps without the sums
	// between GPUs. It is below Derive by up to 30 % in prefill.
	Seed Basis = iota
	// Derived is what Derive gives.
	Derived
	// Measured is what Derive gives, with a prefill rate that was measured.
	Measured
	// Published is a fit that was published, see Llama7BOnA10G.
	Published
)

func (b Basis) String() string {
	switch b {
	case Seed:
		return "seed"
	case Derived:
		return "derived"
	case Measured:
		return "measured"
	case Published:
		return "published"
	}
	return "unknown"
}

// Profiles are the named profiles, by model and then by GPUs. Their prefix cache
// is off and their memory reserved whole; their start-up is assumed, see Derive.
func Profiles() []Named {
	const a, b = "llama-3.1-8b", "llama-3.3-70b"
	return []Named{
		{Name: "llama-2-7b-1xa10g", Model: "llama-2-7b", GPU: "a10g", GPUs: 1, Basis: Published, Profile: starting(Llama7BOnA10G(), 67)},
		{Name: "llama-3.1-8b-1xa100", Model: a, GPU: "a100", GPUs: 1, Profile: llama8BOnA100()},
		{Name: "llama-3.1-8b-1xh100", Model: a, GPU: "h100", GPUs: 1, Profile: starting(Llama8BOnH100(), 68)},
		derived("llama-3.1-8b-fp8-1xh100", a, "h100", 1, FP8),
		{Name: "qwen3-32b-2xh100", Model: "qwen3-32b", GPU: "h100", GPUs: 2, Profile: qwen32BOn2H100()},
		derived("qwen3-32b-2xh200", "qwen3-32b", "h200", 2, BF16),
		{Name: "llama-3.3-70b-4xh100", Model: b, GPU: "h100", GPUs: 4, Profile: starting(Llama70BOn4H100(), 130)},
		{Name: "llama-3.3-70b-8xh100", Model: b, GPU: "h100", GPUs: 8, Profile: llama70BOn8H100()},
		derived("llama-3.3-70b-fp8-2xh100", b, "h100", 2, FP8),
		{Name: "llama-3.3-70b-fp8-4xh100", Model: b, GPU: "h100", GPUs: 4, Precision: FP8, Profile: llama70BIn8BitsOn4H100()},
		derived("llama-3.3-70b-fp8-1xh200", b, "h200", 1, FP8),
		gptOSS120BOnH100(),
		derived("llama-3.1-405b-fp8-8xh100", "llama-3.1-405b", "h100", 8, FP8),
	}
}

// ProfileNamed is one of Profiles; false if there is none of that name, for which
// see ProfileNames.
func ProfileNamed(name string) (Profile, bool) {
	for _, n := range Profiles() {
		if n.Name == name {
			return n.Profile, true
		}
	}
	return Profile{}, false
}

// ProfileNames are the names of Profiles in their order, for an error message.
func ProfileNames() []string {
	var names []string
	for _, n := range Profiles() {
		names = append(names, n.Name)
	}
	return names
}

// derived is a profile that needs no override. The table is constant, so that
// Derive cannot refuse it; a test names each.
func derived(name, model, gpu string, gpus int64, precision Precision) Named {
	n := Named{Name: name, Model: model, GPU: gpu, GPUs: gpus, Precision: precision, Basis: Derived}
	for _, m := range Models() {
		for _, g := range GPUs() {
			if m.Name == model && g.Name == gpu {
				n.Profile, _ = Derive(m, g, gpus, precision)
			}
		}
	}
	return n
}

func starting(p Profile, seconds int64) Profile {
	p.StartUp = time.Duration(seconds) * time.Second
	return p
}

// The measured prefill rate takes the place of one that leaves out what routing
// between experts costs. The step takes all experts as read, as a full batch does:
// a batch of less than some 30 is faster than this.
func gptOSS120BOnH100() Named {
	n := derived("gpt-oss-120b-1xh100", "gpt-oss-120b", "h100", 1, MXFP4)
	n.Basis, n.Profile.PrefillRate = Measured, 39_000
	return n
}

// llama8BOnA100: 12.4 ms per token alone, 37 ms in a batch of 128 at 1,500 tokens
// of context.
func llama8BOnA100() Profile {
	return Profile{
		PrefillRate: 9700, KVCapacity: 443_000, Slots: 256,
		StepBase: 12_180 * time.Microsecond, StepPerJob: 4400 * time.Nanosecond, StepPerToken: 125_400,
		StartUp: 68 * time.Second,
	}
}

// qwen32BOn2H100: 16 ms per token alone, 31 ms in a batch of 128.
func qwen32BOn2H100() Profile {
	return Profile{
		PrefillRate: 15_500, KVCapacity: 315_000, Slots: 256,
		StepBase: 15_870 * time.Microsecond, StepPerJob: 4400 * time.Nanosecond, StepPerToken: 76_300,
		StartUp: 92 * time.Second,
	}
}

// llama70BOn8H100: 10 ms per token alone, 15 ms in a batch of 128.
func llama70BOn8H100() Profile {
	return Profile{
		PrefillRate: 22_000, KVCapacity: 1_378_000, Slots: 256,
		StepBase: 10_060 * time.Microsecond, StepPerJob: 4400 * time.Nanosecond, StepPerToken: 23_800,
		StartUp: 130 * time.Second,
	}
}

// llama70BIn8BitsOn4H100 has the steps of 16 bits on twice the GPUs.
func llama70BIn8BitsOn4H100() Profile {
	p := llama70BOn8H100()
	p.PrefillRate, p.StartUp = 20_000, 95*time.Second
	return p
}
