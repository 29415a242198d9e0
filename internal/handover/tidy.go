package handover

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// The rhythm of what is put in order.
const (
	tidyEach  = time.Minute
	tidyAgain = 2 * time.Minute // what could not be put in order
	tidyLimit = 20
	// tidyMost is when nothing is left at a provider: files of batches and results are gone
	// after 30 days.
	tidyMost = 31 * 24 * time.Hour
)

// tidy has nothing stay at providers that nobody waits for: batches whose lines all have
// their end are cancelled where they run, and their files deleted where they have ended. It
// goes by what the store says, so that it does not matter which process made them.
func (a *Agent) tidy() {
	each := time.NewTicker(tidyEach)
	defer each.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-each.C:
		}
		ctx, cancel := context.WithTimeout(a.ctx, storeWait)
		over, err := a.o.Store.HandedOut(ctx, time.Now().Add(-tidyAgain), tidyLimit)
		cancel()
		if err != nil {
			continue // as all that waits for the store does
		}
		for i := range over {
			a.tidyOne(&over[i])
		}
	}
}

// tidyOne puts one batch in order, as far as that can be done now.
func (a *Agent) tidyOne(b *Batch) {
	p := &provider{a: a, backend: b.Backend, key: b.Key}
	done, err := p.tidied(a.ctx, b)
	if a.ctx.Err() != nil {
		return
	}
	if done = done || time.Since(b.Created) > tidyMost || undeletable(err); done && err != nil {
		a.o.Log.Warn("files of a provider's batch were not deleted", slog.String("provider", string(b.Provider)), slog.String("batch", b.Ref), slog.Any("error", err))
	}
	ctx, cancel := context.WithTimeout(a.ctx, storeWait)
	defer cancel()
	_ = a.o.Store.Tidied(ctx, b.ID, time.Now(), done) // else it is seen again
}

// undeletable reports whether an error says that the provider deletes nothing.
func undeletable(err error) bool {
	s, _ := errors.AsType[status](err)
	return s == http.StatusBadRequest || s == http.StatusMethodNotAllowed || s == http.StatusNotImplemented
}

// tidied reports whether nothing of a batch is left.
func (p *provider) tidied(ctx context.Context, b *Batch) (bool, error) {
	if b.Ref == "" {
		if time.Since(b.Created) < madeBy {
			return false, nil
		}
		ref, sure, err := p.find(ctx, b, map[string]bool{})
		if ref == "" && sure && err == nil {
			return p.dropInputs(ctx, b)
		}
		if ref == "" {
			return false, err
		}
		b.Ref = ref
	}
	st, err := p.ask(ctx, b.Ref)
	switch {
	case err == errGone:
		return true, nil
	case err != nil:
		return false, err
	case !st.ended:
		_ = p.cancel(ctx, b.Ref) // it is looked at again
		return false, nil
	}
	return p.drop(ctx, st.files)
}

// drop deletes what is at paths, and reports whether nothing of it is left.
func (p *provider) drop(ctx context.Context, paths []string) (bool, error) {
	var failed error
	for _, path := range paths {
		if err := p.call(ctx, http.MethodDelete, path, nil, "", nil); err != nil && err != errGone {
			failed = errors.Join(failed, err)
		}
	}
	return failed == nil, failed
}

// dropInputs deletes what a batch was to be made of that was not made.
func (p *provider) dropInputs(ctx context.Context, b *Batch) (bool, error) {
	if p.anthropic() {
		return true, nil // it comes with the batch itself
	}
	paths, err := p.inputs(ctx, b)
	switch {
	case err == errGone:
		return true, errors.New("the provider does not list files: the input of a batch that was not made may be there")
	case err != nil:
		return false, err
	}
	return p.drop(ctx, paths)
}
