package wire

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What is spoken is counted as its reader counts it, however it is written in JSON.
func TestCharacters(t *testing.T) {
	for in, want := range map[string]int64{
		`hello`: 5, `Gr\u00fc\u00dfe`: 5, `Grüße`: 5, `\ud83d\ude00!`: 2, "😀!": 2, `a\nb\\\"`: 5, ``: 0,
	} {
		if got := characters([]byte(in)); got != want {
			t.Errorf("%s: got %d, want %d", in, got, want)
		}
	}
}

// A WAV file tells its length, but a budget is held by its size, whatever it says.
func TestAudioSeconds(t *testing.T) {
	wav := append([]byte("RIFF....WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data...."), make([]byte, 64_000)...)
	if n, most := audioSeconds(wav); n != 3 || most < 64_000/700 {
		t.Errorf("16 kHz mono: %d s, at most %d", n, most)
	}
	if n, most := audioSeconds(make([]byte, 400_000)); n != 101 || most < n {
		t.Errorf("100 s of MP3: %d s, at most %d", n, most)
	}
}

// What is taken for a form is read by another parser in the same way, and the model's
// name is all that Splice changes.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		value := rapid.StringOf(rapid.RuneFrom([]rune("ab-\r\n\"é")))
		model := rapid.StringMatching(`[a-z0-9./-]{1,20}`).Draw(t, "model")
		at := rapid.IntRange(0, 3).Draw(t, "at")
		for i := range 4 {
			if i == at {
				_ = w.WriteField("model", model)
			}
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				_ = w.WriteField(fmt.Sprintf("x%d", i), value.Draw(t, "value"))
			case 1:
				p, _ := w.CreateFormFile(fmt.Sprintf("y%d[]", i), "a.png")
				_, _ = p.Write(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "file"))
			}
		}
		_ = w.Close()
		h, err := ScanForm(ImageEdits, b.Bytes(), w.FormDataContentType())
		if err != nil {
			t.Fatal(err)
		}
		if h.Model != model {
			t.Fatalf("the model is %q, want %q", h.Model, model)
		}
		got, want := read(t, h.Splice(b.Bytes(), Edit{Model: "gpt-image-1"}), w.FormDataContentType()), read(t, b.Bytes(), w.FormDataContentType())
		want["model"] = "gpt-image-1"
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

type failer interface{ Fatal(...any) }

func read(t failer, body []byte, contentType string) map[string]string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out[p.FormName()] = string(b)
	}
}

// Whatever passes for a form, another parser finds the one model that was metered.
func FuzzForm(f *testing.F) {
	part := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n"
	f.Add([]byte(part + "--b--\r\n"))
	f.Add([]byte(part + "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\nContent-Type: audio/mpeg\r\n\r\n\x00\r\n--b--"))
	f.Add([]byte(strings.Replace(part, "model", "prompt", 1) + part + "--b--\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := ScanForm(Transcriptions, body, "multipart/form-data; boundary=b")
		if err != nil {
			return
		}
		models := 0
		for r := multipart.NewReader(bytes.NewReader(body), "b"); ; {
			p, err := r.NextRawPart()
			if err != nil {
				if err != io.EOF {
					t.Fatalf("%q passed, and another parser has: %v", body, err)
				}
				break
			}
			b, _ := io.ReadAll(p)
			if strings.EqualFold(p.FormName(), "model") {
				if models++; string(b) != h.Model {
					t.Fatalf("metered %q, another parser finds %q", h.Model, b)
				}
			}
		}
		if models != 1 || !utf8.ValidString(h.Model) {
			t.Fatalf("%d models in %q", models, body)
		}
	})
}
