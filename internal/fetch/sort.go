package fetch

import (
	"bytes"
	"mime"
	"strings"
)

// pdf is the type of the only documents that are fetched.
const pdf = "application/pdf"

// sort is the type that the bytes are of. What the server says of them must be of the
// same kind, or nothing: many servers mistake one kind of image for another, but what is
// called a page is one, whatever it begins with.
func sort(said string, data []byte) (string, error) {
	is := typeOf(data)
	if is == "" {
		return "", saying{Unfit, "is neither a PNG, JPEG, GIF or WebP image nor a PDF"}
	}
	kind, _, err := mime.ParseMediaType(said)
	switch {
	case said == "", kind == "application/octet-stream", kind == "binary/octet-stream":
	case err != nil:
		return "", saying{Unfit, "comes with a content type that cannot be read"}
	case is == pdf && kind != pdf, is != pdf && !strings.HasPrefix(kind, "image/"):
		return "", saying{Unfit, "is not what its server calls it"}
	}
	return is, nil
}

// typeOf is the type of bytes by how they begin; empty for none that is known.
func typeOf(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) > 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp"
	case bytes.HasPrefix(b, []byte("%PDF-")):
		return pdf
	}
	return ""
}

// fits reports whether a piece of the kind may be of a type.
func (k Kind) fits(t string) bool { return (t == pdf) == (k == Document) }

// named is a type in words.
func named(t string) string {
	if t == pdf {
		return "a PDF"
	}
	return "an image"
}
