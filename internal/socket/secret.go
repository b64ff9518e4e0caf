package socket

import "sallyport/internal/api"

// problemOf returns an error as it crosses the socket. It may carry words of an agent or a tool: no secret in them goes out.
func (s *Server) problemOf(err error) (api.Problem, int) {
	body, status := api.ProblemOf(err)
	body.Text, body.Next = s.Secrets.Redact(body.Text), s.Secrets.Redact(body.Next)
	return body, status
}
