package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"sluice/internal/admin"
)

type capacityForecastCmd struct {
	By       []string `help:"Groups with a trend of their own, comma-separated: tenant, project, key, task, model, backend, provider, class." placeholder:"DIM"`
	Since    string   `default:"28d" help:"The history: 28d, a date or RFC 3339 (${default})." placeholder:"WHEN"`
	Growth   string   `default:"fit" help:"5%%/month, -2%%/week, 30%%/year, or fit: the history's trend (${default})." placeholder:"GROWTH"`
	Horizon  string   `default:"6mo" help:"How far to look ahead: 90d, 13w, 6mo, 1y (${default})." placeholder:"SPAN"`
	Tenant   string   `help:"Of one tenant." placeholder:"ID"`
	Model    string   `help:"Of one public model." placeholder:"MODEL"`
	Class    string   `help:"Of one class: interactive, standard or batch." placeholder:"CLASS"`
	Backend  string   `help:"Of one backend." placeholder:"ID"`
	Provider string   `help:"Of one provider." placeholder:"ID"`
	machines
	connection
	output
}

// Run forecasts.
func (c *capacityForecastCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{}
	for _, p := range [...][2]string{
		{"by", strings.Join(c.By, ",")},
		{"since", c.Since},
		{"growth", c.Growth},
		{"horizon", c.Horizon},
		{"tenant", c.Tenant},
		{"model", c.Model},
		{"class", c.Class},
		{"backend", c.Backend},
		{"provider", c.Provider},
		{"lose", c.Lose},
		{"target", c.Target},
	} {
		if p[1] != "" {
			q.Set(p[0], p[1])
		}
	}
	switch r, measured, err := findReplica(c.Profile); {
	case err != nil:
		return planned("", err)
	case measured:
		raw, err := json.Marshal(admin.ReplicaOf(r))
		if err != nil {
			return err
		}
		q.Set("replica", string(raw))
	default:
		q.Set("profile", r.Name)
	}
	if c.GPUs != 0 {
		q.Set("gpus", count(c.GPUs))
	}
	var f admin.CapacityForecast
	if err := api.get(ctx, "/admin/v1/capacity/forecast", q, &f); err != nil {
		return err
	}
	return c.print(env.Stdout, forecastView(&f, c.GPUs))
}

func forecastView(f *admin.CapacityForecast, gpus int64) view {
	v := view{data: f, columns: []string{"at", "requests_per_second", "input_tokens_per_second", "output_tokens_per_second", "peak_input_tokens_per_second", "peak_output_tokens_per_second", "gpus_needed", "gpus_needed_with_loss", "engine", "over_capacity"}}
	rows := [][]string{{"date", "requests/s", "input tokens/s", "output tokens/s", "GPUs needed", "with loss", "engines' time", ""}}
	for i := range f.Points {
		p := &f.Points[i]
		engine, used, filled, lost, lostText := "", "", "", "", "-"
		if u := p.Peak.Utilisation; u != nil && gpus > 0 {
			engine, used, filled = number(u.Engine), share(u.Engine), bar(u.Engine)
		}
		if p.Lost != nil {
			lost = count(p.Lost.GPUsNeeded)
			lostText = lost
		}
		day := p.At.Format(time.DateOnly)
		v.rows = append(v.rows, []string{
			day, number(p.Mean.Requests), number(p.Mean.Input), number(p.Mean.Output), number(p.Peak.Input), number(p.Peak.Output),
			count(p.Peak.GPUsNeeded), lost, engine, fmt.Sprint(gpus > 0 && p.Peak.Over),
		})
		rows = append(rows, []string{day, figureOf(p.Peak.Requests), figureOf(p.Peak.Input), figureOf(p.Peak.Output), count(p.Peak.GPUsNeeded), lostText, used, filled})
	}
	var text strings.Builder
	text.WriteString(forecastHeadline(f, gpus) + "\n\n")
	fmt.Fprintf(&text, "%s of history to %s. On average %s requests/s, %s input and %s output tokens/s; the busiest hour has %s, %s and %s of that, and is what is planned.\n",
		spanOf(f.Until.Sub(f.Since)), f.Until.Format("2006-01-02 15:04Z"), figureOf(f.Mean.Requests), figureOf(f.Mean.Input), figureOf(f.Mean.Output),
		ratio(f.Peaks.Requests), ratio(f.Peaks.Input), ratio(f.Peaks.Output))
	text.WriteString(growthLine(&f.Growth) + "\n")
	if f.Rejected > 0 {
		fmt.Fprintf(&text, "%s were refused in that time: demand that no tokens show.\n", plural(int(f.Rejected), "request"))
	}
	text.WriteString("\n" + columns(rows, "lrrrrrrl"))
	if len(f.Groups) > 0 {
		text.WriteString("\n" + columns(groupRows(f), strings.Repeat("l", len(f.By))+"rrrrrr"))
	}
	if f.Sampled > 0 {
		fmt.Fprintf(&text, "\nThe spread of lengths is that of the latest %s.", plural(f.Sampled, "request"))
	}
	if f.Illustrative {
		text.WriteString("\n" + f.Profile + ": " + admin.IllustrativeNote)
	}
	v.text = text.String() + "\n"
	return v
}

// forecastHeadline answers when the fleet is under water.
func forecastHeadline(f *admin.CapacityForecast, gpus int64) string {
	last := &f.Points[len(f.Points)-1]
	if gpus == 0 {
		return fmt.Sprintf("%s needed now for the busiest hour, %d on %s.", plural(int(f.Points[0].Peak.GPUsNeeded), "GPU"), last.Peak.GPUsNeeded, last.At.Format(time.DateOnly))
	}
	does := plural(int(gpus), "GPU") + " do"
	if gpus == 1 {
		does = "1 GPU does"
	}
	line := fmt.Sprintf("Above water until %s: %s the busiest hour.", last.At.Format(time.DateOnly), hold(gpus))
	switch {
	case f.RunsOut != nil && !f.RunsOut.After(f.Until):
		line = fmt.Sprintf("Under water now: %s not hold the busiest hour.", does)
	case f.RunsOut != nil:
		line = fmt.Sprintf("Under water from %s on: %s not hold the busiest hour then.", f.RunsOut.Format(time.DateOnly), does)
	}
	switch {
	case f.RunsOutLost != nil && !f.RunsOutLost.After(f.Until):
		line += " With the loss, now."
	case f.RunsOutLost != nil:
		line += " With the loss, from " + f.RunsOutLost.Format(time.DateOnly) + " on."
	}
	return line
}

func growthLine(g *admin.CapacityGrowth) string {
	total := share(math.Abs(g.Total))
	if g.Total < 0 {
		total = "-" + total
	}
	switch g.Source {
	case "given":
		return "Tokens grow by " + total + " until the horizon, as given."
	case "none":
		return "No growth: the history is too short for a trend (seven whole days); give one with --growth."
	}
	return fmt.Sprintf("Tokens grow by %s until the horizon: a straight line through %s, of each dimension by itself.", total, plural(int(g.Parts), g.Unit))
}

func groupRows(f *admin.CapacityForecast) [][]string {
	rows := [][]string{append(append([]string{}, f.By...), "input tokens/s", "output tokens/s", "peak", "growth", "replicas now", "then")}
	for i := range f.Groups {
		g := &f.Groups[i]
		var row []string
		for _, d := range f.By {
			row = append(row, g.Group[d])
		}
		rows = append(rows, append(row, figureOf(g.Mean.Input), figureOf(g.Mean.Output), ratio(g.Peaks.Input), share(g.Growth.Total), fixed(g.Replicas, 2), fixed(g.Later, 2)))
	}
	return rows
}

// spanOf is a long time in words.
func spanOf(d time.Duration) string {
	if days := int(d.Hours() / 24); days > 0 {
		return plural(days, "day")
	}
	return plural(int(d.Hours()), "hour")
}
