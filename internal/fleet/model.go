package fleet

// Model is a decoder-only transformer, as [Derive] needs to know it. The figures
// are those of the published configurations.
type Model struct {
	Name         string
	Params       int64 // all parameters: they fill the memory
	ActiveParams int64 // those that a token of the prompt is multiplied by: without embeddings and idle experts
	Layers       int64
	Hidden       int64 // width of the residual stream
	Inner        int64 // width of the feed-forward layers, of all experts that a token visits
	Heads        int64 // of attention
	KVHeads      int64
	HeadDim      int64
	WeightBytes  int64 // of the published checkpoint where it is quantised: MXFP4; else 0
}

// Models are the models that profiles can be derived for.
func Models() []Model {
	return []Model{
		{
			Name: "llama-2-7b", Params: 6_738_000_000, ActiveParams: 6_476_000_000,
			Layers: 32, Hidden: 4096, Inner: 11_008, Heads: 32, KVHeads: 32, HeadDim: 128,
		},
		{
			Name: "llama-2-70b", Params: 68_977_000_000, ActiveParams: 68_452_000_000,
			Layers: 80, Hidden: 8192, Inner: 28_672, Heads: 64, KVHeads: 8, HeadDim: 128,
		},
		{
			Name: "llama-3.1-8b", Params: 8_030_000_000, ActiveParams: 6_979_000_000,
			Layers: 32, Hidden: 4096, Inner: 14_336, Heads: 32, KVHeads: 8, HeadDim: 128,
		},
		{
			Name: "llama-3.3-70b", Params: 70_554_000_000, ActiveParams: 68_452_000_000,
			Layers: 80, Hidden: 8192, Inner: 28_672, Heads: 64, KVHeads: 8, HeadDim: 128,
		},
		{
			Name: "llama-3.1-405b", Params: 405_853_000_000, ActiveParams: 401_650_000_000,
			Layers: 126, Hidden: 16_384, Inner: 53_248, Heads: 128, KVHeads: 8, HeadDim: 128,
		},
		{
			Name: "qwen3-32b", Params: 32_762_000_000, ActiveParams: 31_206_000_000,
			Layers: 64, Hidden: 5120, Inner: 25_600, Heads: 64, KVHeads: 8, HeadDim: 128,
		},
		{
			Name: "gpt-oss-120b", Params: 116_830_000_000, ActiveParams: 4_550_000_000,
			Layers: 36, Hidden: 2880, Inner: 4 * 2880, Heads: 64, KVHeads: 8, HeadDim: 64,
			WeightBytes: 65_280_000_000,
		},
	}
}

// GPU is an accelerator, as [Derive] needs to know it.
type GPU struct {
	Name      string
	Memory    int64 // bytes
	Bandwidth int64 // of the memory, bytes per second
	Link      int64 // to the others of its node, bytes per second and direction
	BF16, FP8 int64 // dense GFLOP/s; 0 where the precision is not supported

	// Efficiency is the part of the peak that the linear layers of a long prefill
	// reach, in thousandths: one figure for each type, fitted on half of the
	// measured rows of derive_test.go and checked on the other half.
	Efficiency int64
}

// GPUs are the accelerators that an efficiency could be fitted for.
func GPUs() []GPU {
	return []GPU{
		{Name: "h100", Memory: 80 << 30, Bandwidth: 3_350_000_000_000, Link: 450_000_000_000, BF16: 989_000, FP8: 1_979_000, Efficiency: 602},
		{Name: "h200", Memory: 141_000_000_000, Bandwidth: 4_800_000_000_000, Link: 450_000_000_000, BF16: 989_000, FP8: 1_979_000, Efficiency: 562},
		{Name: "a100", Memory: 80 << 30, Bandwidth: 2_039_000_000_000, Link: 300_000_000_000, BF16: 312_000, Efficiency: 617},
	}
}

// Precision is how weights and key-value memory are kept and multiplied.
type Precision uint8

// The precisions.
const (
	BF16  Precision = iota // 16 bits throughout
	FP8                    // 8 bits for weights, memory and linear layers, 16 for attention
	MXFP4                  // the weights as published in 4 bits, all else in 16
)

func (p Precision) String() string {
	switch p {
	case BF16:
		return "bf16"
	case FP8:
		return "fp8"
	case MXFP4:
		return "mxfp4"
	}
	return "unknown"
}
