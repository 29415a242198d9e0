package fleet

import (
	"fmt"
	"time"

	"sluice"
)

// What of a step is neither memory traffic nor arithmetic; from the fits of
// inference-sim, which agree with profiles of H100 and A100 up to four GPUs.
const (
	stepLaunch    = 126_000_000 // ps
	stepPerLayer  = 32_000_000  // ps
	stepPerJob    = 4_400_000   // ps
	weightTraffic = 1400        // permille of the weights' bytes over the bandwidth
	kvTraffic     = 1950        // permille of the context's bytes over the bandwidth; measured 1,300 to 1,950
)

const (
	usableMemory = 900     // permille that an engine takes by default
	overhead     = 3 << 30 // bytes a GPU for activations, graphs and the runtime
	mostParallel = 8       // GPUs of one node

	// Assumed, for want of a measurement: engines start within a minute when their
	// weights are there, and weights come at 2 GB/s.
	startBase   = time.Minute
	startWeight = 2_000_000_000
)

// Derive is the profile of a model on tp GPUs of one node, by the formulas of the
// package comment. It fails where the precision is not to be had or the weights
// leave no room for context.
func Derive(m Model, g GPU, tp int64, p Precision) (Profile, error) {
	if tp < 1 || tp > mostParallel {
		return Profile{}, fmt.Errorf("%d GPUs: a replica has 1 to %d of one node", tp, mostParallel)
	}
	weights, flops, width, err := kept(m, g, p)
	if err != nil {
		return Profile{}, err
	}
	kv := 2 * m.Layers * m.KVHeads * m.HeadDim * width
	room := (g.Memory/1000*usableMemory-overhead)*tp - weights
	if room < kv {
		return Profile{}, fmt.Errorf("%s in %s does not fit into %d × %s: its weights are %d GB", m.Name, p, tp, g.Name, weights/1_000_000_000)
	}
	token := 2*m.ActiveParams*1_000_000/(g.Efficiency*flops*tp) + picosAt(m.passes(tp), g.Bandwidth) + picosAt(m.reduced(tp), g.Link)
	base := stepLaunch + stepPerLayer*m.Layers + picosAt(weights/1000*weightTraffic, g.Bandwidth*tp)
	return Profile{
		PrefillRate:    second / token,
		PrefillPerPair: 4 * m.Layers * m.Heads * m.HeadDim * 1_000_000 / (g.Efficiency * g.BF16 * tp),
		StepBase:       time.Duration(base / picos),
		StepPerJob:     time.Duration((stepPerJob + picosAt(m.reduced(tp), g.Link)) / picos),
		StepPerToken:   picosAt(kv*kvTraffic/1000, g.Bandwidth*tp),
		KVCapacity:     sluice.Tokens(room / kv),
		Slots:          defaultSlots,
		StartUp:        startBase + time.Duration(weights/startWeight)*time.Second,
	}, nil
}

// kept is the weights in bytes, the speed of the linear layers in GFLOP/s and the
// bytes of a number in key-value memory.
func kept(m Model, g GPU, p Precision) (weights, flops, width int64, err error) {
	switch {
	case p == BF16:
		return 2 * m.Params, g.BF16, 2, nil
	case p == FP8 && g.FP8 > 0:
		return m.Params, g.FP8, 1, nil
	case p == MXFP4 && m.WeightBytes > 0:
		return m.WeightBytes, g.BF16, 2, nil
	case p == MXFP4:
		return 0, 0, 0, fmt.Errorf("%s is not published in %s: use bf16 or fp8", m.Name, p)
	}
	return 0, 0, 0, fmt.Errorf("%s has no %s arithmetic: use bf16", g.Name, p)
}

// passes is the memory traffic of a token of the prompt beside the linear layers:
// two norms with their residuals read and write the stream four times each; the
// activation reads two widths of the feed-forward layer and writes one; positions
// and attention read and write the queries. Numbers have 16 bits there.
func (m Model) passes(tp int64) int64 {
	return 2 * m.Layers * (8*m.Hidden + (3*m.Inner+4*m.Heads*m.HeadDim)/tp)
}

// reduced is what each GPU sends for a token of the prompt: a ring sum of the
// stream after attention and after the feed-forward layer.
func (m Model) reduced(tp int64) int64 {
	return m.Layers * 2 * 2 * m.Hidden * 2 * (tp - 1) / tp
}

// picosAt is how long so many bytes take, in picoseconds.
func picosAt(bytes, perSecond int64) int64 {
	return bytes * 1_000_000 / (perSecond / 1_000_000)
}
