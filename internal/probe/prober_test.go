package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/test/bubble"
)

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		status int
		err    error
		want   Outcome
	}{
		{200, nil, Up},
		{204, nil, Up},
		{500, nil, Down},
		{503, nil, Down},
		{0, errors.New("refused"), Down},
		{0, context.DeadlineExceeded, Down},
		{404, nil, Unknown},
		{401, nil, Unknown},
		{307, errors.New("redirect"), Unknown},
		{0, fmt.Errorf("gone: %w", ErrUnasked), Unknown},
	} {
		if got := Judge(tt.status, tt.err); got != tt.want {
			t.Errorf("%d, %v: %d, want %d", tt.status, tt.err, got, tt.want)
		}
	}
}

// Each backend is asked in its own interval, one that hangs is down once its time is
// over, and a path that says nothing is told of once.
func TestProber(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begun := time.Now()
		seen, odd := map[sluice.BackendID][]string{}, []string{}
		p := Start(Options{
			Targets: func() []Target {
				return []Target{{"fast", "/health", time.Second}, {"slow", "/health", 3 * time.Second}, {"hangs", "/health", 2 * time.Second}, {"wrong", "/x", time.Second}}
			},
			Ask: func(ctx context.Context, t Target) (int, error) {
				switch t.Backend {
				case "hangs":
					<-ctx.Done()
					return 0, ctx.Err()
				case "wrong":
					return 404, nil
				}
				return 200, nil
			},
			Observe: func(b sluice.BackendID, up bool) {
				mu.Lock()
				defer mu.Unlock()
				seen[b] = append(seen[b], fmt.Sprint(time.Since(begun), up))
			},
			Odd: func(b sluice.BackendID, path string, status int) { odd = append(odd, fmt.Sprint(b, path, status)) },
		})
		time.Sleep(6500 * time.Millisecond)
		p.Close()
		if len(odd) != 1 || odd[0] != "wrong/x404" {
			t.Errorf("odd: %v", odd)
		}
		if want := []string{"2s false", "4.001s false", "6.002s false"}; !slices.Equal(seen["hangs"], want) {
			t.Errorf("hangs: %v, want %v", seen["hangs"], want)
		}
		if n := len(seen["fast"]); n < 3 || n > 7 {
			t.Errorf("fast: %v", seen["fast"])
		}
		if n := len(seen["slow"]); n < 2 || n > 3 || len(seen["wrong"]) != 0 {
			t.Errorf("slow: %v, wrong: %v", seen["slow"], seen["wrong"])
		}
	})
}
