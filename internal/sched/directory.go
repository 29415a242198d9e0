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
	asked uint8                      // classes in which it was looked for
	found [sluice.NumClasses]*tenant // of last, of those
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
	if id.tenant != d.last {
		d.last, d.asked = id.tenant, 0
	}
	if bit := uint8(1) << id.class; d.asked&bit == 0 {
		d.asked |= bit
		d.found[id.class] = d.of[id.class].Find(id.tenant)
	}
	return d.found[id.class]
}

// add enters a tenant. REQUIRES: there is none of its name.
func (d *directory) add(t *tenant) {
	d.of[t.class.index].Add(t)
	d.asked = 0
}

// remove strikes a tenant out.
func (d *directory) remove(t *tenant) {
	d.of[t.class.index].Remove(t)
	d.asked = 0
}

// each calls f for all tenants, in no order that matters.
func (d *directory) each(f func(*tenant)) {
	for c := range d.of {
		for t := range d.of[c].All() {
			f(t)
		}
	}
}
