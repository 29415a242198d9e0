package main

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/internal/catalog"
)

// rule is a matching rule of the source.
type rule struct {
	Or         []rule `json:"or"`
	And        []rule `json:"and"`
	Equals     string `json:"equals"`
	StartsWith string `json:"starts_with"`
	EndsWith   string `json:"ends_with"`
	Contains   string `json:"contains"`
	Regex      string `json:"regex"`
}

var (
	dated   = regexp.MustCompile(`^\^([a-z0-9/\\.-]+)-(\\d\{8\}|\\d\{4\}-\\d\{2\}-\\d\{2\})\$$`)
	digits  = regexp.MustCompile(`^\^([a-z0-9/\\.-]+)\\d$`)
	noVoice = `^(?!.*-[tT][tT][sS](?:$|-))`
)

// flatten adds the rule to the record, as patterns of which one has to fit.
func (r *rule) flatten(into *catalog.Record) error {
	if r == nil {
		return nil
	}
	for _, sub := range r.Or {
		if err := sub.flatten(into); err != nil {
			return err
		}
	}
	for _, sub := range r.And {
		if err := sub.flatten(into); err != nil {
			return err
		}
	}
	add := func(sign, s string) {
		if s != "" && (sign != "=" || !strings.EqualFold(s, into.Model)) {
			into.Match = append(into.Match, sign+s)
		}
	}
	add("=", r.Equals)
	add("^", r.StartsWith)
	add("$", r.EndsWith)
	add("*", r.Contains)
	if r.Regex == "" {
		return nil
	}
	if r.Regex == noVoice {
		into.Except = "-tts"
		return nil
	}
	if m := dated.FindStringSubmatch(r.Regex); m != nil {
		add("@", strings.ReplaceAll(m[1], `\`, ""))
		return nil
	}
	if m := digits.FindStringSubmatch(r.Regex); m != nil {
		add("#", strings.ReplaceAll(m[1], `\`, ""))
		return nil
	}
	return fmt.Errorf("regex %q is of no known form", r.Regex)
}
