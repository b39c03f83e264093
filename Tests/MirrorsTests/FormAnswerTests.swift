import HTTPProtocol
import Mirrors
import Testing

/// What the tools answer, and what it means.
@Suite struct FormAnswerTests {
    enum Kind: Sendable { case taken([String?]), later(Duration?), refused, closed }

    struct Case: CustomTestStringConvertible, Sendable {
        var tool: MirrorTool
        var status: Int
        var body: String
        var kind: Kind
        var retryAfter: String?
        var method = "POST"

        init(
            _ tool: MirrorTool, _ status: Int, _ body: String, _ kind: Kind, retryAfter: String? = nil,
            method: String = "POST"
        ) {
            (self.tool, self.status, self.body, self.kind, self.retryAfter, self.method) = (
                tool, status, body, kind, retryAfter, method
            )
        }

        var testDescription: String { "\(tool.rawValue) \(status) \(body)" }
    }

    @Test(arguments: [
        Case(.slack, 200, "ok", .taken([nil])),
        Case(.slack, 400, "invalid_payload", .refused),
        Case(.slack, 400, "no_text", .refused),
        Case(.slack, 403, "action_prohibited", .closed),
        Case(.slack, 404, "no_service", .closed),
        Case(.slack, 400, "no_team", .closed),
        Case(.slack, 410, "channel_is_archived", .closed),
        Case(.slack, 429, "rate_limited", .later(.seconds(30)), retryAfter: "30"),
        Case(.slack, 500, "rollup_error", .later(nil)),
        Case(.slack, 302, "", .closed),

        Case(.mattermost, 200, "ok", .taken([nil])),
        Case(
            .mattermost, 400, #"{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook."}"#, .closed),
        Case(
            .mattermost, 400, #"{"id":"web.incoming_webhook.text.app_error","message":"No text specified."}"#, .refused),
        Case(.mattermost, 501, #"{"id":"web.incoming_webhook.disabled.app_error"}"#, .closed),
        Case(.mattermost, 413, "", .refused),
        Case(.mattermost, 502, "<html>", .later(nil)),

        Case(.rocketchat, 200, #"{"success":true}"#, .taken([nil])),
        Case(
            .rocketchat, 200, #"{"success":true,"responses":[{"channel":"a","message":{"_id":"x7"}}]}"#, .taken(["x7"])),
        Case(
            .rocketchat, 400, #"{"success":false,"responses":[{"channel":"a","error":"error-message-size-exceeded"}]}"#,
            .refused),
        Case(.rocketchat, 400, #"{"success":false,"error":"invalid-channel"}"#, .closed),
        Case(.rocketchat, 200, #"{"success":false,"error":"unknown-error"}"#, .refused),
        Case(.rocketchat, 401, #"{"success":false,"error":"Invalid integration id or token provided."}"#, .closed),
        Case(.rocketchat, 429, #"{"success":false,"error":"error-too-many-requests"}"#, .later(nil)),
        Case(.rocketchat, 503, #"{"success":false,"error":"Service Unavailable"}"#, .later(nil)),

        Case(.discord, 200, #"{"id":"123","content":"x"}"#, .taken(["123"])),
        Case(.discord, 204, "", .taken([nil])),
        Case(.discord, 200, #"{"id":"123"}"#, .taken([nil]), method: "PATCH"),
        Case(
            .discord, 429, #"{"message":"You are being rate limited.","retry_after":0.65,"global":false}"#,
            .later(.milliseconds(650)), retryAfter: "1"),
        Case(.discord, 429, #"{"retry_after":1e300}"#, .later(.seconds(86_400))),
        Case(.discord, 429, "error code: 1015", .later(.seconds(9)), retryAfter: "9"),
        Case(.discord, 400, #"{"code":50035,"message":"Invalid Form Body"}"#, .refused),
        Case(.discord, 404, #"{"code":10015,"message":"Unknown Webhook"}"#, .closed),
        Case(.discord, 404, #"{"code":10008,"message":"Unknown Message"}"#, .refused, method: "DELETE"),
        Case(.discord, 400, #"{"code":10003,"message":"Unknown Channel"}"#, .closed),
        Case(.discord, 401, #"{"code":50027,"message":"Invalid Webhook Token"}"#, .closed),

        Case(.teams, 202, "", .taken([nil])),
        Case(.teams, 200, "1", .taken([nil])),
        Case(
            .teams, 200,
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId x",
            .later(nil)),
        Case(.teams, 200, "… returned HTTP error 413 with ContextId x", .refused),
        Case(.teams, 200, "… returned HTTP error 99999999999999999999", .later(nil)),
        Case(.teams, 400, #"{"error":{"code":"TriggerInputSchemaMismatch"}}"#, .refused),
        Case(.teams, 401, #"{"error":{"code":"DirectApiAuthorizationRequired"}}"#, .closed),
        Case(.teams, 404, #"{"error":{"code":"WorkflowNotFound"}}"#, .closed),
        Case(.teams, 429, "", .later(.seconds(5)), retryAfter: "5"),

        Case(.json, 200, "", .taken([nil])),
        Case(.json, 204, "x", .taken([nil])),
        Case(.json, 400, "", .refused),
        Case(.json, 410, "", .closed),
        Case(.json, 408, "", .later(nil)),
        Case(.json, 425, "", .later(nil)),
        Case(.json, 401, "", .closed),
        Case(.json, 403, "", .closed),
        Case(.json, 501, "", .closed),
        Case(.json, 422, "", .refused),
        Case(.json, 503, "", .later(.seconds(86_400)), retryAfter: "99999999999999999999"),
        Case(.json, 503, "", .later(nil), retryAfter: "Sun, 06 Nov 1994 08:49:37 GMT"),
    ])
    func means(_ row: Case) {
        var headers = HTTPHeaders()
        if let value = row.retryAfter { headers.append(name: "Retry-After", value: value) }
        let request = MirrorRequest(method: row.method, body: [], posts: 3..<4)
        let answer = MirrorAnswer(status: row.status, headers: headers, body: Array(row.body.utf8))
        switch (row.tool.form.outcome(of: request, answer), row.kind) {
        case (.taken(let ids), .taken(let expected)): #expect(ids == expected)
        case (.later(_, let after), .later(let expected)): #expect(after == expected)
        case (.refused(let reason), .refused), (.closed(let reason), .closed):
            #expect(reason.contains("\(row.status)") || row.tool == .teams)
        case (let outcome, _): Issue.record("\(outcome)")
        }
    }

    /// Pages of proxies repeat the address, in which the secret is.
    @Test(arguments: MirrorTool.allCases)
    func noReasonRepeatsABody(_ tool: MirrorTool) {
        for status in [400, 404, 500] {
            let answer = MirrorAnswer(status: status, body: Array("<html>/hooks/secret".utf8))
            #expect(!"\(tool.form.outcome(of: MirrorRequest(body: [], posts: 0..<1), answer))".contains("secret"))
        }
    }
}
