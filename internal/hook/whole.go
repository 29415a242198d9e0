package hook

// whole is the texts of a document in one piece, as hooks see and edit them.
type whole struct {
	doc   document
	b     []byte
	text  [][]byte // by doc.texts
	inner document // of texts that are JSON themselves
}

// inside is the tree of a JSON document of which every text counts.
var inside = &node{deep: true, rule: &rule{flush: -1}}

// read finds the texts. It reports whether the document is one.
func (w *whole) read(b []byte, tree *node, paths bool) bool {
	w.doc.paths = paths
	w.b, w.text = b, w.text[:0]
	if !w.doc.find(b, tree) {
		return false
	}
	for i := range w.doc.texts {
		t := &w.doc.texts[i]
		raw := b[t.at.start:t.at.end]
		if t.str && !plain(raw) {
			raw = unquote(nil, raw)
		}
		w.text = append(w.text, raw)
	}
	return true
}

// find is the edits that redact a text: of a text that is JSON itself those within
// its strings and numbers.
func (w *whole) find(f *Finder, i int, counts *Counts) []Edit {
	t := &w.doc.texts[i]
	switch {
	case t.rule.treat == asFixed || t.rule.treat == asEnd:
		return nil
	case t.rule.treat == asCut:
		return nil // see redactable
	case !t.str:
		return number(f, w.text[i], counts)
	case t.rule.treat == asJSON:
		return w.findJSON(f, w.text[i], counts)
	}
	return matches(f, w.text[i], counts)
}

func matches(f *Finder, text []byte, counts *Counts) (out []Edit) {
	f.all(text, func(start, end int, k Kind) {
		counts[k]++
		out = append(out, Edit{start, end, []byte(k.label())})
	})
	return out
}

// number is the edit of a number that is something else: it becomes 0, so that it stays
// one.
func number(f *Finder, text []byte, counts *Counts) []Edit {
	m, _, ok := f.next(text, 0, true)
	if !ok {
		return nil
	}
	counts[m.kind]++
	return []Edit{{0, len(text), []byte("0")}}
}

// findJSON looks into a text that is JSON. One that is not, as a provider may cut it
// short, is a text like others.
func (w *whole) findJSON(f *Finder, text []byte, counts *Counts) (out []Edit) {
	if !w.inner.find(text, inside) {
		return matches(f, text, counts)
	}
	for _, t := range w.inner.texts {
		raw := text[t.at.start:t.at.end]
		var edits []Edit
		switch {
		case !t.str:
			edits = number(f, raw, counts)
		case plain(raw):
			edits = matches(f, raw, counts)
		default:
			edits = rawEdits(raw, matches(f, unquote(nil, raw), counts))
		}
		for _, e := range edits {
			out = append(out, Edit{t.at.start + e.Start, t.at.start + e.End, e.With})
		}
	}
	return out
}

// isJSON reports whether text is one JSON value.
func isJSON(text []byte) bool {
	var d document
	return d.find(text, inside)
}

// apply makes edits, which are by text, and is the document with them. What repeats
// texts in another form is cut where anything was redacted, or where cut says so.
func (w *whole) apply(edits [][]Edit, cut bool) []byte {
	var raw []Edit
	for i := range w.doc.texts {
		t := &w.doc.texts[i]
		if t.rule.treat == asCut {
			if cut {
				raw = append(raw, Edit{t.at.start, t.at.end, t.rule.cut()})
			}
			continue
		}
		if i >= len(edits) || len(edits[i]) == 0 {
			continue
		}
		own := edits[i]
		if t.str {
			own = rawEdits(w.b[t.at.start:t.at.end], own)
		}
		for _, e := range own {
			raw = append(raw, Edit{t.at.start + e.Start, t.at.start + e.End, e.With})
		}
	}
	return spliced(w.b, raw)
}
