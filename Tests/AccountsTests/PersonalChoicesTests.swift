import BridgeTypes
import Testing

@testable import Accounts

@Suite("PersonalChoices")
struct PersonalChoicesTests {
    private func mute(_ nick: String) -> PersonalChoices.Mute { .init(target: .nick(nick), nick: nick) }

    @Test("somebody is muted once, by whom they are, until they are unmuted")
    func muting() {
        let choices = PersonalChoices()
        #expect(!choices.hasMutes)
        let outcomes = [
            choices.mute(mute("bob"), for: .account("ann")), choices.mute(mute("bob"), for: .account("ann")),
            choices.mute(mute("bob"), for: .client(ClientID(rawValue: 1))),
        ]
        #expect(outcomes == [.done, .known, .done])
        #expect(choices.owners(muting: .nick("bob")).count == 2)
        #expect(choices.owners(muting: .account("bob")).isEmpty)
        let unmuted = [
            choices.unmute(.nick("bob"), for: .account("ann")), choices.unmute(.nick("bob"), for: .account("ann")),
        ]
        #expect(unmuted == [true, false])
        choices.forget(ClientID(rawValue: 1))
        #expect(!choices.hasMutes && choices.owners(muting: .nick("bob")).isEmpty)
    }

    @Test("nobody mutes any number of people, nor do all together")
    func bounded() {
        let choices = PersonalChoices()
        let own = (0...PersonalChoices.maxMutes).map { choices.mute(mute("p\($0)"), for: .account("ann")) }
        #expect(own.dropLast().allSatisfy { $0 == .done } && own.last == .full)
        var taken = PersonalChoices.maxMutes
        for owner in 0..<2000 {
            for index in 0..<PersonalChoices.maxMutes {
                if choices.mute(mute("p\(index)"), for: .account("a\(owner)")) == .done { taken += 1 }
            }
        }
        #expect(taken == PersonalChoices.maxMutesInAll)
    }

    @Test("there are no more who chose something of receipts or notices than there is room for")
    func boundedChoosers() {
        let choices = PersonalChoices()
        for owner in 0..<PersonalChoices.maxChoosers {
            choices.setReceipts(.off, of: .account("a\(owner)"))
            choices.setNotices(true, of: .account("a\(owner)"))
        }
        let one = [
            choices.setReceipts(.off, of: .account("ann")), choices.setNotices(true, of: .account("ann")),
            // What is there already changes, and goes.
            choices.setReceipts(.marker, of: .account("a1")), choices.setNotices(true, of: .account("a1")),
            choices.setReceipts(nil, of: .account("a2")), choices.setNotices(false, of: .account("a2")),
            choices.setReceipts(.off, of: .account("ann")), choices.setNotices(true, of: .account("ann")),
        ]
        #expect(one == [false, false, true, true, true, true, true, true])
    }

    @Test("what a connection chose becomes its account's, where that has chosen nothing itself")
    func moving() {
        let client = ClientID(rawValue: 7)
        let choices = PersonalChoices()
        _ = choices.mute(mute("bob"), for: .client(client))
        choices.setReceipts(.off, of: .client(client))
        choices.setNotices(true, of: .client(client))
        _ = choices.move(client, to: "ann")
        #expect(choices.mutes(of: .account("ann")) == [mute("bob")] && choices.mutes(of: .client(client)).isEmpty)
        #expect(choices.receipts(of: .account("ann")) == .off && choices.receipts(of: .client(client)) == nil)
        #expect(choices.wantsNotices(.account("ann")) && !choices.wantsNotices(.client(client)))
        choices.setNotices(false, of: .account("ann"))
        #expect(!choices.hasNotices)
        choices.setReceipts(.marker, of: .client(client))
        _ = choices.move(client, to: "ann")
        #expect(choices.receipts(of: .account("ann")) == .off)
    }
}
