import BridgeTypes
import IRCProtocol
import Identities
import Rooms

// MONITOR: online and offline notifications, for IRC users and people upstream alike.

extension IRCServer {
    /// MONITOR with its modifier in front.
    ///
    /// Source: IRCv3 monitor.
    func monitor(_ params: [String], _ session: IRCSession) {
        let targets =
            params.count > 1 ? params[1].split(separator: ",").map(String.init).filter { !$0.isEmpty } : []
        switch params[0] {
        case "+": startMonitoring(targets, session)
        case "-": for target in targets { monitors.remove(settings.casemapping.fold(target), for: session.id) }
        case "C", "c": monitors.forget(session.id)
        case "L", "l":
            answer(.rplMonList, monitors.list(of: session.id).map(\.nick), session)
            session.appendLine(.rplEndOfMonList, "End of MONITOR list")
        case "S", "s": tellPresence(of: monitors.list(of: session.id).map(\.nick), session)
        default: break
        }
    }

    private func startMonitoring(_ targets: [String], _ session: IRCSession) {
        var taken: [String] = []
        for (index, target) in targets.enumerated() {
            // An impossible nick is always offline, and takes no slot.
            if isPossibleNick(target) {
                let entry = Monitors.Target(nick: target, folded: settings.casemapping.fold(target))
                if monitors.add(entry, for: session.id) == .full {
                    tellPresence(of: taken, session)
                    return tellMonitorsFull(Array(targets[index...]), session)
                }
            }
            taken.append(target)
        }
        tellPresence(of: taken, session)
        for target in taken { tellMetadata(of: target, session) }
    }

    private func isPossibleNick(_ nick: String) -> Bool {
        isService(nick)
            || IRCNames.isValidNickname(nick, maxBytes: settings.nicks.maxBytes, utf8: settings.nicks.utf8)
    }

    private func tellMonitorsFull(_ targets: [String], _ session: IRCSession) {
        // `100 ` and ` :Monitor list is full.`.
        for line in lines(of: targets, separator: ",", after: 27, to: session) {
            session.appendLine(.errMonListFull, String(Monitors.maxTargets), line, "Monitor list is full.")
        }
    }

    /// Sends 730 for nicks online, 731 for the others.
    private func tellPresence(of nicks: [String], _ session: IRCSession) {
        var here: [String] = []
        var absent: [String] = []
        for nick in nicks {
            if let (_, person) = context.identities.person(nick: nick), person.isPresent {
                here.append(person.source)
            } else {
                absent.append(PrintableText.of(nick, maxBytes: 100))
            }
        }
        answer(.rplMonOnline, here, session)
        answer(.rplMonOffline, absent, session)
    }

    private func answer(_ numeric: IRCNumeric, _ words: [String], _ session: IRCSession) {
        for line in lines(of: words, separator: ",", to: session) { session.appendLine(numeric, line) }
    }

    // MARK: - Events

    /// A person with this nick came online or went offline.
    package func presenceChanged(_ person: Person, isHere: Bool) {
        guard !monitors.isEmpty else { return }
        for client in monitors.watchers(of: settings.casemapping.fold(person.nick)) {
            // A disconnecting client needs no notification of itself.
            guard let session = sessions[client], isHere || !person.clients.contains(client) else { continue }
            deliver(
                session.numeric(isHere ? .rplMonOnline : .rplMonOffline, isHere ? person.source : person.nick),
                to: client)
            if isHere { tellMetadata(of: person, session) }
        }
    }
}
