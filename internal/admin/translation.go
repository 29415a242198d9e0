package admin

import "sluice/internal/auth"

// translationOf is a record's mode as the API shows it; nil where it says none.
func translationOf(t auth.Translation) *string {
	if t == "" {
		return nil
	}
	s := string(t)
	return &s
}

// applyTranslation sets a record's mode where the fields name one.
func applyTranslation(t *auth.Translation, f *string) (err error) {
	if f != nil {
		*t, err = auth.ParseTranslation(*f)
	}
	return err
}
