package fakellm

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"
)

const (
	defaultDimensions = 64
	mostDimensions    = 4096
)

// embed answers /v1/embeddings with vectors that depend on the seed alone.
func (t *turn) embed() error {
	if err := t.submit(); err != nil {
		return err
	}
	if t.job != nil {
		if _, err := t.job.await(t.r.Context(), 0); err != nil {
			return err
		}
	}
	t.load()
	dims := t.a.dimensions
	if dims <= 0 || dims > mostDimensions {
		dims = defaultDimensions
	}
	data := make([]obj, t.a.items)
	for i := range data {
		var v any = vector(t.a.seed+uint64(i), dims)
		if t.a.base64 {
			v = packed(vector(t.a.seed+uint64(i), dims))
		}
		data[i] = obj{"object": "embedding", "index": i, "embedding": v}
	}
	now := time.Now()
	t.s.book.update(t.entry, func(e *Served) { e.First = &now })
	o := obj{"object": "list", "data": data, "model": t.a.asked}
	if t.a.b.Usage != "none" {
		told := t.tally(0).told(t.a.b.Usage)
		o["usage"] = obj{"prompt_tokens": told.input, "total_tokens": told.input}
	}
	return t.end(o)
}

func vector(seed uint64, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(int64(mix(seed+uint64(i)<<32)>>40)-1<<23) / (1 << 23) / 8
	}
	return v
}

func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
