package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// The search for a batch that was being made when its process died.
const (
	skew     = 15 * time.Minute // that the provider's clock may be off
	maxPages = 20
	pageSize = 100
	// madeBy is when the call that makes a batch is over, whoever made it: what is not
	// there then was not made.
	madeBy = 2*callWait + time.Minute
)

// listed is a batch in a list of the provider's.
type listed struct {
	ID       string          `json:"id"`
	Metadata json.RawMessage `json:"metadata"`
	Created  json.RawMessage `json:"created_at"` // seconds, or a time
	Status   string          `json:"processing_status"`
	Counts   map[string]int  `json:"request_counts"`
}

// created is zero where it cannot be read.
func (l *listed) created() (t time.Time) {
	var seconds int64
	if json.Unmarshal(l.Created, &seconds) == nil {
		return time.Unix(seconds, 0)
	}
	_ = json.Unmarshal(l.Created, &t)
	return t
}

// find looks for a batch among the newest that the provider has. sure says that what was
// not found is not there. Batches of OpenAI's say in their metadata which they are. Those of
// Anthropic's have none: of one that was made at the time, and has as many requests, the
// results tell, once it has ended; until then nothing is sure. not are those that are known
// to be others, to which it adds.
func (p *provider) find(ctx context.Context, at *Batch, not map[string]bool) (ref string, sure bool, err error) {
	page := "?limit=100"
	sure = true
	for range maxPages {
		var list struct {
			Data []listed `json:"data"`
			More bool     `json:"has_more"`
		}
		if err := p.call(ctx, http.MethodGet, p.batches()+page, nil, "", &list); err != nil {
			return "", false, err
		}
		for i := range list.Data {
			b := &list.Data[i]
			if made := b.created(); !made.IsZero() && made.Before(at.Created.Add(-skew)) {
				return "", sure, nil
			}
			is, known := p.is(ctx, b, at, not)
			if is {
				return b.ID, true, nil
			}
			sure = sure && known
		}
		if !list.More || len(list.Data) == 0 {
			return "", sure, nil
		}
		after := "&after="
		if p.anthropic() {
			after = "&after_id="
		}
		page = "?limit=100" + after + url.QueryEscape(list.Data[len(list.Data)-1].ID)
	}
	return "", false, nil
}

// is reports whether a batch is the one that is looked for; known is false where that
// cannot be told yet.
func (p *provider) is(ctx context.Context, b *listed, at *Batch, not map[string]bool) (is, known bool) {
	if !p.anthropic() {
		return bytes.Contains(b.Metadata, []byte(`"`+at.ID+`"`)), true
	}
	total := 0
	for _, n := range b.Counts {
		total += n
	}
	if not[b.ID] || total != at.Lines || b.created().After(at.Created.Add(skew)) {
		return false, true
	}
	if b.Status != "ended" {
		return false, false
	}
	_, err := p.read(ctx, at, p.batches()+"/"+b.ID+"/results", func(int, Result) { is = true })
	if not[b.ID] = err == nil && !is; err != nil && err != errGone {
		return false, false
	}
	return is, true
}

// inputs are the paths of files that a batch was to be made of, among the newest that the
// provider has: none is known by its id where the process died that had uploaded it. They
// are known by their name.
func (p *provider) inputs(ctx context.Context, at *Batch) (paths []string, err error) {
	page := "?purpose=batch&order=desc&limit=1000"
	for range maxPages {
		var list struct {
			Data []struct {
				ID      string `json:"id"`
				Name    string `json:"filename"`
				Created int64  `json:"created_at"`
			} `json:"data"`
			More bool `json:"has_more"`
		}
		if err := p.call(ctx, http.MethodGet, "/files"+page, nil, "", &list); err != nil {
			return nil, err
		}
		for _, f := range list.Data {
			if f.Created > 0 && time.Unix(f.Created, 0).Before(at.Created.Add(-skew)) {
				return paths, nil
			}
			if f.Name == inputName(at) && f.ID != "" {
				paths = append(paths, "/files/"+url.PathEscape(f.ID))
			}
		}
		if !list.More || len(list.Data) == 0 {
			break
		}
		page = "?purpose=batch&order=desc&limit=1000&after=" + url.QueryEscape(list.Data[len(list.Data)-1].ID)
	}
	return paths, nil
}
