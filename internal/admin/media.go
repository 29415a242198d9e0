package admin

import "sluice/internal/auth"

// fetchOf is a record's mode as the API shows it; nil where it says none.
func fetchOf(f auth.FetchMedia) *string {
	if f == "" {
		return nil
	}
	s := string(f)
	return &s
}

// applyFetch sets a record's mode where the fields name one.
func applyFetch(to *auth.FetchMedia, f *string) (err error) {
	if f != nil {
		*to, err = auth.ParseFetchMedia(*f)
	}
	return err
}
