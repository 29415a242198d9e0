package transcripts

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/wire"
)

// usageMembers are where providers tell what an answer took.
var usageMembers = []string{"usage", "usageMetadata", "timings"}

// changed is an event whose JSON was changed by f, which is given every object in it.
// It reports whether f changed any.
func changed(t *testing.T, event string, f func(object map[string]any) bool) (string, bool) {
	t.Helper()
	ev, err := wire.NewEvents(strings.NewReader(event), 8<<20).Next()
	if err != nil || string(ev.Data) == "[DONE]" {
		return event, false
	}
	d := json.NewDecoder(bytes.NewReader(ev.Data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", event, err)
	}
	if !visit(v, f) {
		return event, false
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(wire.AppendEvent(nil, string(ev.Name), b)), true
}

func visit(v any, f func(map[string]any) bool) (did bool) {
	switch v := v.(type) {
	case map[string]any:
		did = f(v)
		for _, inner := range v {
			did = visit(inner, f) || did
		}
	case []any:
		for _, inner := range v {
			did = visit(inner, f) || did
		}
	}
	return did
}

// withFigures changes all figures of usage in a stream.
func withFigures(t *testing.T, events []string, figure json.Number) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		e, _ = changed(t, e, func(o map[string]any) (did bool) {
			for _, name := range usageMembers {
				did = visit(o[name], func(u map[string]any) bool {
					for k, v := range u {
						if _, ok := v.(json.Number); ok {
							u[k] = figure
						}
					}
					return true
				}) || did
			}
			return did
		})
		out = append(out, e)
	}
	return out
}

// TestFault_U22_EveryProvider: usage is never told.
func TestFault_U22_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		for i := range events {
			events[i], _ = changed(t, events[i], func(o map[string]any) (did bool) {
				for _, name := range usageMembers {
					if _, ok := o[name].(map[string]any); ok {
						delete(o, name)
						did = true
					}
				}
				return did
			})
		}
		e := tr.says(t, events...).want(t, sluice.Completed, sluice.ReasonNone)
		if e.Usage.Source != sluice.UsageEstimated || e.Usage.Input == 0 || e.Usage.OutputTotal() == 0 || e.Cost == 0 {
			t.Errorf("settled at %+v, %v", e.Usage, e.Cost)
		}
	})
}

// TestFault_U23_EveryProvider: usage is told twice.
func TestFault_U23_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		want := tr.says(t, events...).last(t).Usage
		var twice []string
		for _, e := range events {
			again, told := changed(t, e, func(o map[string]any) (did bool) {
				for _, name := range []string{"choices", "candidates"} {
					if _, ok := o[name]; ok {
						o[name] = []any{}
					}
				}
				for _, name := range usageMembers {
					_, ok := o[name].(map[string]any)
					did = did || ok
				}
				return did
			})
			twice = append(twice, e)
			if told && !strings.Contains(e, "message_start") {
				twice = append(twice, again)
			}
		}
		if got := tr.says(t, twice...).want(t, sluice.Completed, sluice.ReasonNone).Usage; got != want {
			t.Errorf("settled at %+v, want %+v", got, want)
		}
	})
}

// TestFault_U24_EveryProvider: usage that cannot be.
func TestFault_U24_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		for _, figure := range []json.Number{"0", "-7", "1000000000000000000", "1e300"} {
			e := tr.says(t, withFigures(t, events, figure)...).want(t, sluice.Completed, sluice.ReasonNone)
			u := e.Usage
			if !u.Anomalous || u.Source == sluice.UsageReported || u.InputTotal() <= 0 || u.OutputTotal() <= 0 || u.Total() > 4000 {
				t.Errorf("%s: settled at %+v", figure, u)
			}
		}
	})
}

// totals are what providers call the sum of an answer's tokens.
var totals = regexp.MustCompile(`"(?:total_tokens|totalTokenCount|totalTokens)": ?(\d+)`)

// TestFault_U25_EveryProvider: the classes are disjoint and sum to the total that the
// provider told, in every transcript where it told one.
func TestFault_U25_EveryProvider(t *testing.T) {
	checked := 0
	for _, tr := range all(t) {
		told := totals.FindAllStringSubmatch(tr.files["upstream"], -1)
		if len(told) == 0 || tr.answers != 1 || strings.Contains(tr.files["upstream"], "billed_units") {
			continue
		}
		checked++
		t.Run(tr.name, func(t *testing.T) {
			e := tr.run(t, nil).last(t)
			if e.Usage.Source != sluice.UsageReported {
				return
			}
			if want := told[len(told)-1][1]; json.Number(want) != number(e) {
				t.Errorf("settled at %+v, the provider's total is %s", e.Usage, want)
			}
		})
	}
	if checked < 40 {
		t.Errorf("only %d transcripts tell a total", checked)
	}
}

func number(e *ledger.Entry) json.Number {
	b, _ := json.Marshal(e.Usage.Total()) // a number
	return json.Number(b)
}

// TestFault_U26_EveryProvider: another model in the answer.
func TestFault_U26_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		named := false
		for i := range events {
			var ok bool
			events[i], ok = changed(t, events[i], func(o map[string]any) (did bool) {
				for _, name := range []string{"model", "modelVersion"} {
					if _, ok := o[name].(string); ok {
						o[name], did = "other-0613", true
					}
				}
				return did
			})
			named = named || ok
		}
		if e := tr.says(t, events...).want(t, sluice.Completed, sluice.ReasonNone); named && e.ServedModel != "other-0613" {
			t.Errorf("served %q, asked for %q", e.ServedModel, e.UpstreamModel)
		}
	})
}

// TestFault_U27_EveryProvider: a stream that ends inside of the arguments of a call is
// no answer, whatever was whole before.
func TestFault_U27_EveryProvider(t *testing.T) {
	cut := 0
	each(t, func(t *testing.T, tr *transcript, events []string) {
		last := -1
		for i, e := range events {
			if strings.Contains(e, `"arguments":`) || strings.Contains(e, `"partial_json":`) || strings.Contains(e, `"functionCall":`) ||
				strings.Contains(e, `"toolUse":{"input":`) {
				last = i
			}
		}
		if last <= 0 {
			return
		}
		cut++
		res := tr.says(t, events[:last]...)
		res.broken(t, res.status == 200, sluice.UpstreamTruncated)
		for _, finish := range []string{`"tool_calls"`, `"tool_use"`, `"stop"`, `"end_turn"`} {
			if strings.Contains(string(res.body), `_reason":`+finish) {
				t.Errorf("it ends with %s: %s", finish, res.client)
			}
		}
	})
	if cut < 15 {
		t.Errorf("only %d streams have calls", cut)
	}
}
