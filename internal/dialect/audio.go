package dialect

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// audioForms are the forms of sound that two dialects take: OpenAI's words for them, and
// MIME types. The first type of each is the one that backends are sent.
var audioForms = []struct{ format, mime string }{
	{"wav", "audio/wav"},
	{"wav", "audio/x-wav"},
	{"wav", "audio/wave"},
	{"mp3", "audio/mp3"},
	{"mp3", "audio/mpeg"},
}

// audioFormat is OpenAI's word for a MIME type, empty if it has none.
func audioFormat(mime string) string {
	for _, f := range audioForms {
		if f.mime == mime {
			return f.format
		}
	}
	return ""
}

// audioType is the MIME type of OpenAI's word, empty if it is none.
func audioType(format string) string {
	for _, f := range audioForms {
		if f.format == format {
			return f.mime
		}
	}
	return ""
}

// heard reads the input_audio of a part of a chat; false if it has no typed place.
func heard(r *Request, at place, v jsontext.Value) (Part, bool) {
	var in struct {
		Data   string         `json:"data"`
		Format string         `json:"format"`
		Rest   jsontext.Value `json:",embed"`
	}
	mime := ""
	if json.Unmarshal(v, &in, lenient) == nil {
		mime = audioType(in.Format)
	}
	if mime == "" {
		r.ask(FeatureAudioOther, at.inMessages("input_audio"), nil)
		return Part{}, false
	}
	r.unknown(at.inMessages("input_audio"), in.Rest)
	r.ask(FeatureAudioInput, at.inMessages(""), nil)
	return Part{Kind: AudioPart, Media: Media{Type: mime, Data: plain64(in.Data)}}, true
}
