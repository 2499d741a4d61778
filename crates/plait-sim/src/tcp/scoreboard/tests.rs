use super::*;

const S: u64 = 1000;

fn segments(start: u64, end: u64) -> SeqRange {
    SeqRange { start: start * S, end: end * S }
}

fn board(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for index in 0..count {
        board.push(Sent {
            range: segments(index, index + 1),
            at: Instant::from_millis(index),
            transmissions: 1,
            is_sacked: false,
            is_lost: false,
            is_resent: false,
            packet: PacketState::default(),
            first_packet: PacketState::default(),
            rate: Snapshot::default(),
        });
    }
    board
}

fn sack(board: &mut Scoreboard, start: u64, end: u64) -> usize {
    let mut delivered = Vec::new();
    board.sack(segments(start, end), &mut delivered);
    delivered.len()
}

fn resend(board: &mut Scoreboard) -> u64 {
    let seq = board.next_to_resend().unwrap().range.start;
    board.resend(seq, Instant::from_millis(99), PacketState::default(), Snapshot::default());
    seq / S
}

#[test]
fn is_lost_needs_so_many_segments_above() {
    // RFC 6675 section 4, IsLost, threshold 3: segments 0 and 3 are missing, 1, 2, 4, 5 arrived.
    let mut board = board(10);
    sack(&mut board, 1, 3);
    assert!(!board.mark_lost_by_sack(3), "two above segment 0");
    sack(&mut board, 4, 5);
    assert!(board.mark_lost_by_sack(3), "three above segment 0");
    assert_eq!(resend(&mut board), 0);
    sack(&mut board, 5, 6);
    assert!(!board.mark_lost_by_sack(3), "two above segment 3");
    sack(&mut board, 8, 9);
    assert!(board.mark_lost_by_sack(3));
    assert_eq!(resend(&mut board), 3);
    assert!(board.next_to_resend().is_none(), "6 and 7 have one above");
}

#[test]
fn pipe_counts_what_is_under_way() {
    let mut board = board(10);
    assert_eq!(board.in_flight_bytes(), 10 * S);
    sack(&mut board, 2, 6);
    assert_eq!(board.in_flight_bytes(), 6 * S);
    board.mark_lost_by_sack(3);
    assert_eq!(board.in_flight_bytes(), 4 * S, "0 and 1 are lost");
    resend(&mut board);
    assert_eq!(board.in_flight_bytes(), 5 * S);
    let mut delivered = Vec::new();
    board.acknowledge(S, &mut delivered);
    assert_eq!((delivered.len(), board.in_flight_bytes()), (1, 4 * S));
    board.acknowledge(6 * S, &mut delivered);
    assert_eq!((delivered.len(), board.in_flight_bytes()), (2, 4 * S), "only 1 was new");
    assert!(!board.has_lost());
}

#[test]
fn the_same_block_again_delivers_nothing() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, 2, 4), 2);
    assert_eq!(sack(&mut board, 2, 4), 0);
    assert_eq!(sack(&mut board, 1, 6), 3);
    assert_eq!(sack(&mut board, 8, 40), 2, "beyond what was sent");
}

#[test]
fn a_lost_retransmission_is_sent_again() {
    let mut board = board(5);
    sack(&mut board, 1, 4);
    board.mark_lost_by_sack(3);
    assert_eq!(resend(&mut board), 0);
    assert!(board.next_to_resend().is_none());
    board.mark_lost(0);
    assert_eq!(board.in_flight_bytes(), S, "only segment 4");
    assert_eq!(resend(&mut board), 0);
    assert_eq!(board.get(0).unwrap().transmissions, 3);
}

#[test]
fn marks_taken_back_can_be_set_again() {
    let mut board = board(10);
    sack(&mut board, 3, 6);
    board.mark_lost_by_sack(3);
    board.unmark_lost();
    assert_eq!(board.in_flight_bytes(), 7 * S);
    assert!(board.next_to_resend().is_none());
    assert!(!board.mark_lost_by_sack(4));
    assert!(board.mark_lost_by_sack(3));
    assert_eq!(board.in_flight_bytes(), 4 * S);
}
