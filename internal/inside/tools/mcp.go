package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/tool"
)

// mcpLineMax bounds a line of the agent's: a call, and what its protocol puts around it.
const mcpLineMax = 4 * tool.LineMax

// serveMCP answers an agent until it ends its side.
func (c caller) serveMCP(ctx context.Context, p Process, has []tool.Definition) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "sallyport", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Tools of the host that you run on. What needs a person answers at once that it was asked; you hear the rest later.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // the list is the session's, from first to last
	})
	for _, d := range has {
		server.AddTool(&mcp.Tool{Name: string(d.Name), Description: d.Description, InputSchema: d.Schema},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return c.callMCP(ctx, d.Name, r.Params.Arguments), nil
			})
	}
	if err := server.Run(ctx, &mcp.IOTransport{Reader: p.In, Writer: p.Out, MaxLineLength: mcpLineMax}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("speak MCP: %w", err)
	}
	return nil
}

// callMCP makes one call. What went wrong is a result too, so that the agent reads it.
func (c caller) callMCP(ctx context.Context, name tool.Name, args json.RawMessage) *mcp.CallToolResult {
	r, err := c.ask(ctx, name, args)
	text, fault := json.Marshal(r)
	if err == nil {
		err = fault
	}
	if err != nil {
		said := problem.Of(err)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(said.Kind) + ": " + said.Text}}}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: r}
}
