package admin

import "sluice/internal/engine"

// RegionStatus is one region, where some model has a locality.
type RegionStatus struct {
	Region       string  `json:"region"`
	State        string  `json:"state" doc:"healthy; lost: no backend of a pool there takes requests, and those at home there go elsewhere; returning: they come back by a ramp"`
	Share        float64 `json:"share" doc:"Part of the requests at home there that it may have: less than 1 while it comes back"`
	Backends     int     `json:"backends" doc:"Those that take requests"`
	Of           int     `json:"of" doc:"Of so many"`
	Home         int64   `json:"home" doc:"Attempts that began there of requests at home there, in the last half to whole minute"`
	Away         int64   `json:"away" doc:"Likewise, of requests at home elsewhere"`
	Headroom     float64 `json:"headroom" doc:"Part of its capacity that requests at home elsewhere may occupy"`
	HeadroomUsed float64 `json:"headroom_used" doc:"Part of that in use: in the pool and the dimension where it is most"`
	AwayRunning  int64   `json:"away_running" doc:"Requests at home elsewhere that run there"`
	AwayWaiting  int     `json:"away_waiting" doc:"Those that wait for room there"`
}

// regions adds them.
func (s *Status) regions(v *engine.View) {
	for i := range v.Regions {
		r := &v.Regions[i]
		s.Regions = append(s.Regions, RegionStatus{
			Region: r.Name, State: r.State, Share: float64(r.Share) / 1000, Backends: r.Backends, Of: r.Of,
			Home: r.RecentHome, Away: r.RecentAway, Headroom: float64(r.Headroom) / 1000, HeadroomUsed: float64(r.Used) / 1000,
			AwayRunning: r.Running, AwayWaiting: r.Waiting,
		})
	}
}
