package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/wire"
)

var itemID = regexp.MustCompile(`"(?:msg|rs|fc)_[^"]+"`)

// withItem is a request that has an item by its id alone.
func withItem(item string) ask {
	return ask{path: responsesAt, body: `{"model":"m","input":[` + item + `,{"role":"user","content":"go on [[tokens=3]]"}]}`}
}

// An item of a stored response is named by its id where the response is kept: by the
// credential, or at the replica, that made it. To others, and of what is not stored, it
// does not exist.
func TestStoredItems(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true`} {
		for _, replica := range []bool{false, true} {
			t.Run(fmt.Sprintf("replica=%v/stream=%v", replica, stream != ""), func(t *testing.T) {
				places := []place{{keys: []string{"k1", "k2"}}}
				if replica {
					places = []place{{replica: true}, {replica: true}}
				}
				inShelves(t, setup{places: places}, func(t *testing.T, r *shelves) {
					for range 4 { // wherever it was made
						_, made := r.make(stream)
						at := r.want(sluice.Completed, sluice.ReasonNone, 200).Final.Backend
						id := itemID.FindString(made.body)
						for _, item := range []string{`{"type":"item_reference","id":` + id + `}`, `{"id":` + id + `}`} {
							if g := r.do(withItem(item)); g.status != 200 {
								t.Errorf("%s: %d %s", item, g.status, g.body)
							}
							if got := r.want(sluice.Completed, sluice.ReasonNone, 200).Final.Backend; replica && got != at {
								t.Errorf("made at %s, named at %s", at, got)
							}
							sent := r.fake.Requests()
							if a, b := sent[len(sent)-2].Header.Get("Authorization"), sent[len(sent)-1].Header.Get("Authorization"); a != b {
								t.Errorf("made with %s, named with %s", a, b)
							}
							calls := len(sent)
							if g := r.do(withItem(item).of(rival)); g.status != 404 || !strings.Contains(g.body, "names an item that does not exist") || len(r.fake.Requests()) != calls {
								t.Errorf("another's %s: %d %s", item, g.status, g.body)
							}
						}
					}
					_, made := r.make(stream + `,"store":false`)
					if g := r.do(withItem(`{"type":"item_reference","id":` + itemID.FindString(made.body) + `}`)); g.status != 404 {
						t.Errorf("of what is not stored: %d %s", g.status, g.body)
					}
				})
			})
		}
	}
}

// Reasoning that is sent back by its id alone goes where it is kept; sealed, or as its
// text, it says itself what it was and goes anywhere.
func TestStoredReasoning(t *testing.T) {
	const made = `{"id":"resp_1","object":"response","model":"up","status":"completed","store":true,"output":[{"type":"reasoning","id":"rs_0123456789abcdef0","summary":[]},` +
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"y"}]}],"usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}`
	inShelves(t, setup{places: []place{{handler: answers(200, made), keys: []string{"k1", "k2"}}}}, func(t *testing.T, r *shelves) {
		bare, summed := `{"type":"reasoning","id":"rs_0123456789abcdef0","summary":[]}`, `{"type":"reasoning","id":"rs_0123456789abcdef0","summary":[{"type":"summary_text","text":"t"}]}`
		for _, item := range []string{bare, summed} {
			if g := r.do(withItem(item)); g.status != 404 {
				t.Errorf("before it was made, %s: %d %s", item, g.status, g.body)
			}
		}
		r.make("")
		for _, item := range []string{bare, summed} {
			if g := r.do(withItem(item)); g.status != 200 {
				t.Errorf("%s: %d %s", item, g.status, g.body)
			}
			if g := r.do(withItem(item).of(rival)); g.status != 404 {
				t.Errorf("another's %s: %d %s", item, g.status, g.body)
			}
		}
		for _, item := range []string{
			`{"type":"reasoning","id":"rs_0123456789abcdef0","summary":[],"encrypted_content":"ZQ=="}`,
			`{"type":"reasoning","id":"rs_0123456789abcdef0","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}`,
		} {
			if g := r.do(withItem(item).of(rival)); g.status != 200 {
				t.Errorf("%s: %d %s", item, g.status, g.body)
			}
		}
	})
}

// What a client calls an item itself makes it nobody's: neither a list of what a response
// answers to nor a response to it names anything that is then the client's.
func TestStoredItemsOfTheClientsOwnName(t *testing.T) {
	inShelves(t, setup{}, func(t *testing.T, r *shelves) {
		g := r.do(ask{path: responsesAt, body: `{"model":"m","input":[{"type":"message","role":"user","id":"msg_theirs","content":"x [[tokens=1]]"}]}`})
		id := responseID.FindString(g.body)
		if g := r.get(id + "/input_items"); g.status != 200 || !strings.Contains(g.body, `"msg_theirs"`) {
			t.Fatalf("items: %d %s", g.status, g.body)
		}
		if g := r.do(withItem(`{"id":"msg_theirs"}`)); g.status != 404 {
			t.Errorf("named: %d %s", g.status, g.body)
		}
	})
}

// An item that is kept is not put into another dialect, and a gateway whose backends keep
// nothing knows of none.
func TestStoredItemsElsewhere(t *testing.T) {
	fake, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "up", Ratio: 1100, Output: 60}}})
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	inBubble(t, setup{places: []place{{handler: fake, dialect: wire.Anthropic}}}, func(t *testing.T, r *rig) {
		g := r.do(withItem(`{"type":"item_reference","id":"msg_1"}`))
		if g.status != 404 {
			t.Errorf("got %d %s", g.status, g.body)
		}
		r.want(sluice.Rejected, sluice.NotFound, 404)
	})
}
