package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// Bounds of what is looked at.
const (
	maxMedia   = 256       // pieces that are remembered by size
	maxHeaders = 128       // image headers that are decoded per request
	headerLen  = 256 << 10 // decoded bytes of an image in which its size must stand
)

type mediaKind uint8

const (
	noMedia mediaKind = iota
	imageMedia
	audioMedia
	videoMedia
	documentMedia
)

// media is one image, audio clip, video or document of a request.
type media struct {
	kind          mediaKind
	detail        byte  // first letter of low, high, auto or original; 0 if not said
	width, height int32 // pixels, 0 if unknown
	bytes         int32 // decoded size, 0 if it is not in the body
}

func (k mediaKind) needs() route.Needs {
	return [...]route.Needs{0, route.NeedImage, route.NeedAudio, route.NeedVideo, route.NeedFile}[k]
}

// mediaKindOf sorts a part by its type, then by what it holds.
func mediaKindOf(part, mime string) mediaKind {
	switch part {
	case "image", "image_url", "input_image":
		return imageMedia
	case "input_audio", "audio_url", "audio":
		return audioMedia
	case "video_url", "video":
		return videoMedia
	case "document", "file", "input_file", "container_upload":
		return documentMedia
	}
	switch major, _, _ := strings.Cut(mime, "/"); major {
	case "image":
		return imageMedia
	case "audio":
		return audioMedia
	case "video":
		return videoMedia
	case "application", "text":
		return documentMedia
	}
	return noMedia
}

func base64Len(n int) int { return n / 4 * 3 }

// imageSize reads an image's dimensions from its header alone, never its pixels;
// 0, 0 where they are not found.
func imageSize(data []byte, escaped bool) (w, h int32) {
	var text io.Reader = bytes.NewReader(data)
	if escaped {
		// Only the head is looked at: undoing the escapes of all would copy the image.
		text = bytes.NewReader(appendUnquoted(nil, data[:wholeEscapes(data, min(len(data), headerLen/4))]))
	}
	return imageSizeOf(io.LimitReader(base64.NewDecoder(base64.StdEncoding, text), headerLen))
}

// imageSizeOf is imageSize of an image's own bytes.
func imageSizeOf(raw io.Reader) (w, h int32) {
	head := make([]byte, 30)
	n, _ := io.ReadFull(raw, head)
	r := io.MultiReader(bytes.NewReader(head[:n]), raw)
	var c image.Config
	var err error
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("\x89PNG")):
		c, err = png.DecodeConfig(r)
	case bytes.HasPrefix(head, []byte("\xff\xd8")):
		c, err = jpeg.DecodeConfig(r)
	case bytes.HasPrefix(head, []byte("GIF8")):
		c, err = gif.DecodeConfig(r)
	case n == 30 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		c = webpSize(head)
	}
	const most = 1 << 20 // pixels: nothing beyond it is an image, and products stay small
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > most || c.Height > most {
		return 0, 0
	}
	return int32(c.Width), int32(c.Height)
}

// wholeEscapes shortens n so that data[:n] ends outside an escape.
func wholeEscapes(data []byte, n int) int {
	if n == len(data) {
		return n
	}
	if i := bytes.LastIndexByte(data[max(0, n-12):n], '\\'); i >= 0 {
		return max(0, n-12) + i
	}
	return n
}

// webpSize reads the first chunk of a WebP file: lossy, lossless or extended.
func webpSize(b []byte) image.Config {
	switch string(b[12:16]) {
	case "VP8 ":
		return image.Config{
			Width:  int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff),
			Height: int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff),
		}
	case "VP8L":
		v := binary.LittleEndian.Uint32(b[21:])
		return image.Config{Width: int(v&0x3fff) + 1, Height: int(v>>14&0x3fff) + 1}
	case "VP8X":
		return image.Config{
			Width:  int(b[24]) | int(b[25])<<8 | int(b[26])<<16 + 1,
			Height: int(b[27]) | int(b[28])<<8 | int(b[29])<<16 + 1,
		}
	}
	return image.Config{}
}

// For gives the input estimate (before any learned ratio) and its hard bound for
// a backend's model: only the size of media depends on it.
func (h *Head) For(model string) (estimate, bound sluice.Tokens) {
	estimate, bound = h.Text, h.base
	if len(h.media) == 0 {
		return estimate, bound
	}
	table := imageTableOf(h.Op.Dialect(), model)
	for _, m := range h.media {
		e, b := m.tokens(table)
		estimate += e
		bound += b
	}
	if h.moreMedia > 0 {
		e, b := media{kind: imageMedia}.tokens(table)
		estimate += e * sluice.Tokens(h.moreMedia)
		bound += b * sluice.Tokens(h.moreMedia)
	}
	return estimate, bound
}

// tokens gives the estimate and the bound of one piece of media.
func (m media) tokens(t imageTable) (estimate, bound sluice.Tokens) {
	n := sluice.Tokens(m.bytes)
	switch m.kind {
	case imageMedia:
		if m.width == 0 {
			return t.most, t.hardMost
		}
		return t.size(int64(m.width), int64(m.height), m.detail)
	case audioMedia:
		return t.clips.audio.of(n)
	case videoMedia:
		return t.clips.video.of(n)
	case documentMedia:
		return t.clips.document.of(n)
	}
	return 0, 0
}
