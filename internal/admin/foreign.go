package admin

import "sluice/internal/auth"

// foreignOf is a record's mode as the API shows it; nil where it says none.
func foreignOf(f auth.ForeignIDs) *string {
	if f == "" {
		return nil
	}
	s := string(f)
	return &s
}

// applyForeign sets a record's mode where the fields name one.
func applyForeign(to *auth.ForeignIDs, f *string) (err error) {
	if f != nil {
		*to, err = auth.ParseForeignIDs(*f)
	}
	return err
}
