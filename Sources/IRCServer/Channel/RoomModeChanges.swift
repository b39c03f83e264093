/// The changes of a MODE that came about, as they are told.
struct RoomModeChanges {
    private var modes = ""
    private var arguments: [String] = []
    private var isSetting: Bool?

    var isEmpty: Bool { modes.isEmpty }
    var params: [String] { [modes] + arguments }

    mutating func add(_ letter: Character, _ isSet: Bool, _ argument: String?) {
        if isSetting != isSet { modes += isSet ? "+" : "-" }
        isSetting = isSet
        modes.append(letter)
        if let argument { arguments.append(argument) }
    }
}
