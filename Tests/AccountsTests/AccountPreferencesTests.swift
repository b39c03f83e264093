import BridgeTypes
import Testing

@testable import Accounts

@Suite("AccountPreferences")
struct AccountPreferencesTests {
    private func mute(_ nick: String) -> AccountPreferences.Mute { .init(target: .nick(nick), nick: nick) }

    @Test("a user is muted once, by identity, until unmuted")
    func muting() {
        let choices = AccountPreferences()
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
        choices.remove(ClientID(rawValue: 1))
        #expect(!choices.hasMutes && choices.owners(muting: .nick("bob")).isEmpty)
    }

    @Test("mutes are bounded, for each owner and in all")
    func bounded() {
        let choices = AccountPreferences()
        let own = (0...AccountPreferences.maxMutes).map { choices.mute(mute("p\($0)"), for: .account("ann")) }
        #expect(own.dropLast().allSatisfy { $0 == .done } && own.last == .full)
        var taken = AccountPreferences.maxMutes
        for owner in 0..<2000 {
            for index in 0..<AccountPreferences.maxMutes {
                if choices.mute(mute("p\(index)"), for: .account("a\(owner)")) == .done { taken += 1 }
            }
        }
        #expect(taken == AccountPreferences.maxMutesInAll)
    }

    @Test("the number of owners with receipt and notice preferences is bounded")
    func boundedChoosers() {
        let choices = AccountPreferences()
        for owner in 0..<AccountPreferences.maxOwners {
            choices.setReceipts(.off, of: .account("a\(owner)"))
            choices.setNotices(true, of: .account("a\(owner)"))
        }
        let one = [
            choices.setReceipts(.off, of: .account("ann")), choices.setNotices(true, of: .account("ann")),
            // Existing entries can still be changed and removed.
            choices.setReceipts(.marker, of: .account("a1")), choices.setNotices(true, of: .account("a1")),
            choices.setReceipts(nil, of: .account("a2")), choices.setNotices(false, of: .account("a2")),
            choices.setReceipts(.off, of: .account("ann")), choices.setNotices(true, of: .account("ann")),
        ]
        #expect(one == [false, false, true, true, true, true, true, true])
    }

    @Test("a connection's preferences become its account's, whose own take precedence")
    func moving() {
        let client = ClientID(rawValue: 7)
        let choices = AccountPreferences()
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
