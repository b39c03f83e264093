import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Testing

@testable import Rooms

@Suite("RoomModeration")
struct RoomModerationTests {
    private let ann = PersonID(rawValue: 1)
    private let bob = PersonID(rawValue: 2)

    /// A mask of a front end with wildcards.
    private static func mask(_ text: String) -> PersonMask {
        let mask = IRCMask(text)
        return PersonMask(text: mask.text, key: mask.key) { mask.matches($0) }
    }

    private func ban(_ mask: String, isLasting: Bool = false) -> RoomModeration.Ban {
        RoomModeration.Ban(
            mask: Self.mask(mask), setBy: "ann", setAt: ChatTimestamp(milliseconds: 0), isLasting: isLasting)
    }

    @Test("prefixes come highest first and go with the person")
    func prefixes() {
        let room = RoomModeration()
        #expect(room.setVoiced(ann, true) && room.setOperator(ann, true) && !room.setOperator(ann, true))
        #expect(room.prefixes(of: ann) == "@+" && room.prefixes(of: bob) == "")
        room.left(ann)
        #expect(room.prefixes(of: ann) == "" && !room.setOperator(ann, false))
    }

    @Test("modes end with the last user, except an administrator's")
    func emptied() {
        let room = RoomModeration()
        #expect(room.modeString == "+nt")
        #expect(room.set(.moderated, true, isLasting: false) && room.set(.inviteOnly, true, isLasting: true))
        #expect(room.set(.protectedTopic, false, isLasting: true) && !room.set(.moderated, true, isLasting: true))
        #expect(room.modeString == "+imn")
        #expect(room.ban(ban("a!*@*")) == .added && room.ban(ban("b!*@*", isLasting: true)) == .added)
        room.invite(bob)
        room.emptied()
        #expect(room.modeString == "+int" && room.bans.map(\.mask.text) == ["b!*@*"] && !room.isInvited(bob))
    }

    @Test("lists are bounded, and a mask stands once")
    func bounded() {
        let room = RoomModeration()
        for index in 0..<RoomModeration.maxBans { #expect(room.ban(ban("n\(index)!*@*")) == .added) }
        #expect(room.ban(ban("N1!*@*")) == .known && room.ban(ban("x!*@*")) == .full)
        #expect(room.unban(Self.mask("N1!*@*")) == "n1!*@*" && room.unban(Self.mask("n1!*@*")) == nil)
        for index in 0..<500 { room.invite(PersonID(rawValue: UInt64(index))) }
        #expect(room.invited.count == RoomModeration.maxInvitations && room.isInvited(PersonID(rawValue: 499)))
    }

    @Test("a ban of the account holds under any nick")
    func accounts() {
        let room = RoomModeration()
        _ = room.ban(ban("gusteau!*@*"))
        func person(_ nick: String, _ account: String?) -> Person {
            Person(kind: .local, nick: nick, ident: "~u", host: "bridge", realname: "r", account: account)
        }
        #expect(room.isBanned(person("Gusteau", nil)) && room.isBanned(person("other", "gusteau")))
        #expect(!room.isBanned(person("other", nil)) && !room.isBanned(person("other", "ann")))
    }
}
