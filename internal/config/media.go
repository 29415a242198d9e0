package config

// FetchMedia is refuse or allow.
type FetchMedia string

func (FetchMedia) words() []string { return []string{"refuse", "allow"} }
