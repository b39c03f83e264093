import ChatModel
import Testing

@testable import Mirrors

@Suite("Posts of a batch for a channel, one after another")
struct NetworkOutletTests {
    private static func post(_ text: String) -> MirrorPost {
        MirrorPost(
            .message(MarkedText(text, as: .irc)), room: "lobby", channel: "#lobby", msgid: text,
            at: ChatTimestamp(milliseconds: 0), speaker: MirrorPost.Speaker(nick: "ann"))
    }

    private let posts = ["notice", "hello"].map(Self.post)

    @Test("each goes out when the one before is delivered, and their ids come together")
    func inOrder() {
        var outlet = NetworkOutlet()
        outlet.begin(posts)
        #expect(outlet.next == .post(posts[0]))
        #expect(outlet.delivered(id: nil) == .post(posts[1]))
        #expect(outlet.delivered(id: "m1") == .settled(.taken(ids: [nil, "m1"])))
    }

    @Test("what was delivered is not said again when the rest is")
    func again() {
        var outlet = NetworkOutlet()
        outlet.begin(posts)
        _ = outlet.delivered(id: "m0")
        #expect(outlet.failed("lost", isFinal: false) == .settled(.later(reason: "lost", after: nil)))
        #expect(outlet.next == .post(posts[1]))
        #expect(outlet.delivered(id: "m1") == .settled(.taken(ids: ["m0", "m1"])))
    }

    @Test("a refused one is passed over, and alone it is the outcome")
    func refused() {
        var outlet = NetworkOutlet()
        outlet.begin(posts)
        #expect(outlet.failed("no", isFinal: true) == .post(posts[1]))
        #expect(outlet.delivered(id: nil) == .settled(.taken(ids: [nil, nil])))
        #expect(outlet.refusal == "no")
        outlet.begin([posts[1]])
        #expect(outlet.next == .post(posts[1]))
        #expect(outlet.refusal == nil)
        #expect(outlet.failed("never", isFinal: true) == .settled(.refused(reason: "never")))
    }
}
