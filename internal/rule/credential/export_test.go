package credential

// As returns the ring of another user.
func (r *Ring) As(uid int) *Ring {
	r.uid = uid
	return r
}
