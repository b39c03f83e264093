/// The text of a message as typed.
package struct SpokenText: Equatable {
    /// Lines are separated by LF.
    package var text: String
    /// Offsets at which the client split lines that belong together: in UTF-8, ascending.
    package var cuts: [Int] = []

    package init(text: String, cuts: [Int] = []) {
        self.text = text
        self.cuts = cuts
    }
}
