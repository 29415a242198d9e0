package sched

import "sluice"

// directory finds tenants by their names. The steps of an arrival all ask for the
// same one, so that the answer to the last question is kept.
type directory struct {
	of    map[sluice.TenantID][sluice.NumClasses]*tenant
	last  sluice.TenantID
	found [sluice.NumClasses]*tenant // of last
}

// find is a tenant of a class, nil if nothing of it waits, runs or is owed.
func (d *directory) find(id tenantID) *tenant {
	if id.tenant != d.last {
		d.last, d.found = id.tenant, d.of[id.tenant]
	}
	return d.found[id.class]
}

// put enters a tenant under a name, or strikes the name out if t is nil.
func (d *directory) put(id tenantID, t *tenant) {
	d.find(id)
	d.found[id.class] = t
	if d.found == [sluice.NumClasses]*tenant{} {
		delete(d.of, id.tenant)
		return
	}
	if d.of == nil {
		d.of = make(map[sluice.TenantID][sluice.NumClasses]*tenant)
	}
	d.of[id.tenant] = d.found
}

// each calls f for all tenants, in no order that matters.
func (d *directory) each(f func(*tenant)) {
	for _, found := range d.of {
		for _, t := range found {
			if t != nil {
				f(t)
			}
		}
	}
}
