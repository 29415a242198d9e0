package sched

import (
	"hash/maphash"

	"sluice"
	"sluice/internal/byname"
)

// directory finds tenants by their names. The steps of an arrival all ask for the
// same one, so that the answers to the last question are kept.
type directory struct {
	of    [sluice.NumClasses]byname.Index[sluice.TenantID, tenant, tenantNames]
	last  sluice.TenantID
	known bool
	found [sluice.NumClasses]*tenant // of last, if known
}

type tenantID struct {
	class  sluice.Class
	tenant sluice.TenantID
}

// tenantNames is how a directory finds tenants.
type tenantNames struct{}

func (tenantNames) Name(t *tenant) sluice.TenantID { return t.id }

func (tenantNames) Hash(seed maphash.Seed, id sluice.TenantID) uint64 {
	return maphash.String(seed, string(id))
}

// find is a tenant of a class, nil if nothing of it waits, runs or is owed.
func (d *directory) find(id tenantID) *tenant {
	return d.all(id.tenant)[id.class]
}

// all is a tenant of all classes, until the next question.
func (d *directory) all(id sluice.TenantID) *[sluice.NumClasses]*tenant {
	if !d.known || id != d.last {
		d.look(id, nil)
	}
	return &d.found
}

// look finds the answers to questions about a tenant, of which a class may be known.
func (d *directory) look(id sluice.TenantID, known *tenant) {
	d.last, d.known = id, true
	for c := range d.of {
		switch {
		case d.of[c].Len() == 0:
			d.found[c] = nil
		case known != nil && int(known.class.index) == c:
			d.found[c] = known
		default:
			d.found[c] = d.of[c].Find(id)
		}
	}
}

// add enters a tenant. REQUIRES: there is none of its name.
func (d *directory) add(t *tenant) {
	d.of[t.class.index].Add(t)
	d.known = false
}

// remove strikes a tenant out.
func (d *directory) remove(t *tenant) {
	d.of[t.class.index].Remove(t)
	d.known = false
}

// each calls f for all tenants, in no order that matters.
func (d *directory) each(f func(*tenant)) {
	for c := range d.of {
		for t := range d.of[c].All() {
			f(t)
		}
	}
}
