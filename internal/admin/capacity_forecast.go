package admin

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sluice"
	"sluice/internal/capacity"
	"sluice/internal/ledger"
)

// CapacityForecast is a demand as it was, is and will be.
type CapacityForecast struct {
	Profile      string          `json:"profile"`
	Illustrative bool            `json:"illustrative"`
	Since        time.Time       `json:"since" doc:"Of the history, from its first request on"`
	Until        time.Time       `json:"until" doc:"The last full hour's end"`
	Growth       CapacityGrowth  `json:"growth"`
	Mean         CapacityDemand  `json:"mean" doc:"Of the last seven days, or the trend's where that is fitted"`
	Peaks        CapacityPeaks   `json:"peak_to_mean" doc:"The highest hour of the last seven days ÷ their mean, of each dimension by itself"`
	Sampled      int             `json:"sampled_requests" doc:"Requests whose lengths give the spread; 0: all are taken as alike"`
	Rejected     int64           `json:"rejected_requests" doc:"In the history: demand that no tokens show"`
	Points       []CapacityPoint `json:"points"`
	RunsOut      *time.Time      `json:"runs_out_at,omitempty" doc:"The first day whose peak hour the fleet does not hold, within the horizon"`
	RunsOutLost  *time.Time      `json:"runs_out_with_loss_at,omitempty" doc:"The same without the part that may be lost"`
	By           []string        `json:"by,omitempty"`
	Groups       []CapacityGroup `json:"groups,omitempty" doc:"The largest by cost, each with a trend of its own"`
	Left         int             `json:"groups_left_out,omitempty" doc:"Further groups that are in the whole alone; at least so many"`
}

// CapacityGrowth is where a trend comes from.
type CapacityGrowth struct {
	Source string  `json:"source" enum:"given,fitted,none" doc:"none: there is too little history to fit, and nothing was given"`
	Parts  int64   `json:"fitted_to,omitempty" doc:"Days or weeks that the trend is fitted to"`
	Unit   string  `json:"fitted_unit,omitempty" enum:"day,week"`
	Total  float64 `json:"total" doc:"What tokens grow by until the horizon: 0.21 is 21 %"`
}

// CapacityPeaks are peaks ÷ means.
type CapacityPeaks struct {
	Requests float64 `json:"requests"`
	Input    float64 `json:"input_tokens"`
	Output   float64 `json:"output_tokens"`
}

// CapacityPoint is a moment of a forecast.
type CapacityPoint struct {
	At   time.Time      `json:"at"`
	Mean CapacityDemand `json:"mean"`
	Peak CapacityState  `json:"peak" doc:"The peak hour, on the fleet"`
	Lost *CapacityState `json:"lost,omitempty" doc:"The same without the part that may be lost"`
}

// CapacityGroup is the forecast of one group.
type CapacityGroup struct {
	Group    map[string]string `json:"group"`
	Growth   CapacityGrowth    `json:"growth"`
	Mean     CapacityDemand    `json:"mean"`
	Peaks    CapacityPeaks     `json:"peak_to_mean"`
	Replicas float64           `json:"replicas" doc:"That its peak hour fills by itself now; those of the groups need not come together"`
	Then     CapacityDemand    `json:"mean_at_horizon"`
	Later    float64           `json:"replicas_at_horizon"`
}

type capacityForecastIn struct {
	Filters
	By      string `query:"by" maxLength:"100" doc:"Comma-separated: tenant, project, key, task, model, backend, provider, class"`
	Since   string `query:"since" maxLength:"40" doc:"The history: 28d, a date or RFC 3339; empty: 28d"`
	Growth  string `query:"growth" maxLength:"40" doc:"5%/month, -2%/week, 30%/year; empty or fit: the history's trend"`
	Horizon string `query:"horizon" maxLength:"20" doc:"6mo, 13w, 90d, 1y; empty: 6mo"`
	Profile string `query:"profile" maxLength:"64" doc:"A name of /admin/v1/capacity/profiles"`
	Replica string `query:"replica" maxLength:"1000" doc:"A replica's own figures as JSON, in place of profile: see CapacityReplica"`
	GPUs    int64  `query:"gpus" minimum:"0" maximum:"1000000" doc:"Of the fleet; 0: say only how many are needed"`
	Lose    string `query:"lose" maxLength:"20" doc:"Part of the GPUs that may fail together: 25%"`
	Target  string `query:"target" maxLength:"20" doc:"Part of the engines' time that may be planned for; empty: all of it"`
}

type capacityForecastOut struct{ Body CapacityForecast }

// The bounds of a forecast's questions to the ledger.
const (
	maxForecastGroups = 20
	forecastSample    = 500                  // latest requests that the spread is taken from
	maxForecastSpan   = 400 * 24 * time.Hour // 9,600 hours: below ledger.MaxUsageRows
	defaultForecast   = 28 * 24 * time.Hour  // history
)

func (a *API) capacityForecast(ctx context.Context, in *capacityForecastIn) (*capacityForecastOut, error) {
	o, since, err := in.outlook(a.o.Now())
	if err != nil {
		return nil, err
	}
	by, err := in.dimensions()
	if err != nil {
		return nil, err
	}
	a.flush(ctx)
	scope := ledger.UsageQuery{Since: since, Until: o.Until}
	scope.Owner, scope.Where = in.where()
	f, sampled, err := a.forecast(ctx, scope, o)
	if err != nil {
		return nil, err
	}
	out := &capacityForecastOut{CapacityForecast{
		Profile: o.Replica.Name, Illustrative: in.Replica == "", Since: o.Until.Add(-time.Duration(f.Hours) * time.Hour), Until: o.Until,
		Growth: growthOf(o, f), Mean: DemandOf(f.Mean), Peaks: peaksOf(f.Peaks), Sampled: sampled,
		RunsOut: moment(f.Out), RunsOutLost: moment(f.LostOut), Points: []CapacityPoint{}, By: texts(by),
	}}
	for _, p := range f.Points {
		x := CapacityPoint{At: p.At, Mean: DemandOf(p.Mean), Peak: capacityStateOf(p.Plan.State)}
		if p.Plan.Lost != nil {
			s := capacityStateOf(*p.Plan.Lost)
			x.Lost = &s
		}
		out.Body.Points = append(out.Body.Points, x)
	}
	if out.Body.Rejected, err = a.rejected(ctx, scope); err != nil {
		return nil, err
	}
	if len(by) > 0 {
		out.Body.Groups, out.Body.Left, err = a.forecastGroups(ctx, scope, o, by)
	}
	return out, err
}

// outlook reads the question; since is where the history begins.
func (in *capacityForecastIn) outlook(now time.Time) (o capacity.Outlook, since time.Time, err error) {
	o.Until, o.GPUs = now.UTC().Truncate(time.Hour), in.GPUs
	if since, err = historySince(in.Since, now); err != nil {
		return o, since, err
	}
	if o.Until.Sub(since) > maxForecastSpan || !since.Before(o.Until) {
		return o, since, hinted(sluice.Invalid("since", "is not between an hour and 400 days ago"), "write 28d")
	}
	horizon := in.Horizon
	if horizon == "" {
		horizon = "6mo"
	}
	if o.Horizon, err = capacity.ParseSpan(horizon); err != nil {
		return o, since, named("horizon", err)
	}
	if in.Growth != "" && in.Growth != "fit" {
		o.Growth = &capacity.Growth{}
	}
	growth := Quantity(in.Growth)
	if o.Growth == nil {
		growth = ""
	}
	if err = readFigures(figure{"growth", growth, o.Growth}, figure{"lose", Quantity(in.Lose), &o.Lose}, figure{"target", Quantity(in.Target), &o.Target}); err != nil {
		return o, since, err
	}
	if in.Replica == "" {
		o.Replica, err = capacity.ReplicaNamed(in.Profile)
		return o, since, err
	}
	r := CapacityReplica{GPUs: 1}
	if err := json.Unmarshal([]byte(in.Replica), &r); err != nil || r.GPUs < 1 || r.PrefillRate < 1 {
		return o, since, hinted(sluice.Invalid("replica", "is not the JSON of a replica"), "send one of /admin/v1/capacity/profiles, changed")
	}
	o.Replica, err = r.replica()
	return o, since, err
}

// historySince is a moment, or a span before now that may be of days and months.
func historySince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return now.Add(-defaultForecast), nil
	}
	if seconds, err := capacity.ParseSpan(s); err == nil {
		return now.Add(-time.Duration(seconds) * time.Second), nil
	}
	return parseTime("since", s, now)
}

// named gives an error of a value its parameter.
func named(param string, err error) error {
	e := *sluice.AsError(err)
	e.Param = param
	return &e
}

func (in *capacityForecastIn) dimensions() ([]ledger.Dimension, error) {
	var out []ledger.Dimension
	for word := range strings.SplitSeq(in.By, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		var d ledger.Dimension
		if err := d.UnmarshalText([]byte(word)); err != nil || d == ledger.ByHour || d == ledger.ByDay || d == ledger.ByLabel || d == ledger.ByOutcome || d == ledger.ByReason || d == ledger.ByUser {
			return nil, hinted(sluice.Invalid("by", "names something that is not forecast by"), "use tenant, project, key, task, model, backend, provider or class")
		}
		out = append(out, d)
	}
	return out, nil
}

// forecast asks the ledger for a scope's hours and latest lengths, and looks
// ahead.
func (a *API) forecast(ctx context.Context, scope ledger.UsageQuery, o capacity.Outlook) (capacity.Forecast, int, error) {
	q := scope
	q.By = []ledger.Dimension{ledger.ByHour}
	rows, err := a.o.Ledger.Usage(ctx, q)
	if err != nil {
		return capacity.Forecast{}, 0, err
	}
	o.History = make([]capacity.Bucket, 0, len(rows))
	for i := range rows {
		t := &rows[i].Totals
		at, err := time.Parse(time.RFC3339, rows[i].Group[0])
		if err != nil {
			return capacity.Forecast{}, 0, err
		}
		o.History = append(o.History, capacity.Bucket{
			Start: at, Attempts: t.Attempts, Input: int64(t.InputTotal()), Cached: int64(t.CacheRead), Output: int64(t.OutputTotal()),
		})
	}
	page, err := a.o.Ledger.Recent(ctx, ledger.RecentQuery{
		Owner: scope.Owner, Where: append(scope.Where[:len(scope.Where):len(scope.Where)], ledger.Match{By: ledger.ByOutcome, Value: sluice.Completed.String()}), Limit: forecastSample,
	})
	if err != nil {
		return capacity.Forecast{}, 0, err
	}
	var inputs, outputs []sluice.Tokens
	for i := range page.Entries {
		u := &page.Entries[i].Usage
		inputs, outputs = append(inputs, u.InputTotal()), append(outputs, u.OutputTotal())
	}
	o.Inputs, o.Outputs = capacity.SampleOf(inputs), capacity.SampleOf(outputs)
	f, err := o.Solve()
	return f, len(inputs), err
}

// rejected counts the requests that were refused.
func (a *API) rejected(ctx context.Context, scope ledger.UsageQuery) (int64, error) {
	scope.Where = append(scope.Where[:len(scope.Where):len(scope.Where)], ledger.Match{By: ledger.ByOutcome, Value: sluice.Rejected.String()})
	rows, err := a.o.Ledger.Usage(ctx, scope)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Requests, nil
}

// forecastGroups looks ahead for each of the largest groups.
func (a *API) forecastGroups(ctx context.Context, scope ledger.UsageQuery, o capacity.Outlook, by []ledger.Dimension) (out []CapacityGroup, left int, err error) {
	q := scope
	q.By, q.Limit = by, maxForecastGroups+1
	rows, err := a.o.Ledger.Usage(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	o.GPUs, o.Lose = 0, capacity.Share{}
	for i := range rows {
		if i == maxForecastGroups {
			return out, 1, nil
		}
		one := scope
		one.Where = scope.Where[:len(scope.Where):len(scope.Where)]
		g := CapacityGroup{Group: make(map[string]string, len(by))}
		for k, d := range by {
			g.Group[d.String()] = rows[i].Group[k]
			one.Where = append(one.Where, ledger.Match{By: d, Value: rows[i].Group[k]})
		}
		f, _, err := a.forecast(ctx, one, o)
		if sluice.AsError(err).Param == "since" && err != nil {
			continue // nothing of it has reached a backend
		}
		if err != nil {
			return nil, 0, err
		}
		last := f.Points[len(f.Points)-1]
		g.Growth, g.Mean, g.Peaks = growthOf(o, f), DemandOf(f.Mean), peaksOf(f.Peaks)
		g.Replicas, g.Then, g.Later = filled(f.Points[0].Plan), DemandOf(last.Mean), filled(last.Plan)
		out = append(out, g)
	}
	return out, 0, nil
}

// filled is how many replicas a plan's demand fills, as a fraction.
func filled(p capacity.Plan) float64 {
	return rounded(p.Utilisation.Engine.Times(capacity.Int(p.Replicas)).Over(p.Target))
}

func growthOf(o capacity.Outlook, f capacity.Forecast) CapacityGrowth {
	g := CapacityGrowth{Source: "given", Total: rounded(f.Growth)}
	switch {
	case o.Growth != nil:
	case f.Fitted == 0:
		g.Source = "none"
	default:
		g.Source, g.Parts, g.Unit = "fitted", f.Fitted, "day"
		if f.Span > 24*3600 {
			g.Unit = "week"
		}
	}
	return g
}

func peaksOf(p capacity.Peaks) CapacityPeaks {
	return CapacityPeaks{Requests: rounded(p.Requests), Input: rounded(p.Input), Output: rounded(p.Output)}
}
