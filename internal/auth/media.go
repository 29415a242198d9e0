package auth

import "sluice"

// FetchMedia says what becomes of an image or a document that a request names by URL,
// where its backend takes bytes alone.
type FetchMedia string

// The modes. Empty is what the record above says, and refuse where none says: to fetch it
// the gateway connects to places that its clients choose, from the operator's addresses,
// and that is the operator's to allow.
const (
	FetchRefuse FetchMedia = "refuse" // the backend is left out, as for all that its dialect cannot carry
	FetchAllow  FetchMedia = "allow"  // the gateway fetches it, from public addresses alone
)

// ParseFetchMedia reads a mode; empty is none.
func ParseFetchMedia(s string) (FetchMedia, error) {
	switch f := FetchMedia(s); f {
	case "", FetchRefuse, FetchAllow:
		return f, nil
	}
	return "", sluice.Invalid("fetch_media", "is %q: write refuse or allow", s)
}

// fetches is the mode in force: the last of the list that says one.
func fetches(list ...FetchMedia) bool {
	var in FetchMedia
	for _, f := range list {
		if f != "" {
			in = f
		}
	}
	return in == FetchAllow
}
